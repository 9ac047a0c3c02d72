#pragma once

#include "suite/adapter.h"

namespace unflake {

const Adapter& gtest_adapter();
const Adapter& catch2_adapter();
const Adapter& doctest_adapter();
const Adapter& boost_test_adapter();
const Adapter& ctest_adapter();
const Adapter& command_adapter();

}  // namespace unflake
