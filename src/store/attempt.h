#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "util/result.h"

namespace unflake {

// Thrown inside a store's folder only: its methods turn it into their Result.
struct StoreFailure : std::exception {
  explicit StoreFailure(Error error) : error(std::move(error)) {}
  const char* what() const noexcept override { return error.what.c_str(); }
  Error error;
};

// The door of such a folder: no exception leaves it.
template <class Work>
auto attempt(Work work) -> Result<decltype(work())> {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const StoreFailure& failure) {
    return failure.error;
  } catch (const std::exception& exception) {
    return internal_error(std::string("the history failed: ") + exception.what());
  }
}

}  // namespace unflake
