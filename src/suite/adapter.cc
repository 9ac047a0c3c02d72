#include "suite/adapter.h"

#include "suite/adapters.h"

namespace unflake {

const Adapter& adapter_for(Framework framework) {
  switch (framework) {
    case Framework::gtest:
      return gtest_adapter();
    case Framework::catch2:
      return catch2_adapter();
    case Framework::doctest:
      return doctest_adapter();
    case Framework::boost_test:
      return boost_test_adapter();
    case Framework::ctest:
      return ctest_adapter();
    case Framework::command:
      break;
  }
  return command_adapter();
}

}  // namespace unflake
