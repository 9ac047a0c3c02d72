#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace unflake::simulated {

// A coroutine that begins at once, and that another one can wait for.
class Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct Return {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle ended) noexcept;
    void await_resume() noexcept {}
  };
  struct promise_type {
    std::coroutine_handle<> caller = std::noop_coroutine();
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    Return final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> caller) { handle_.promise().caller = caller; }
  void await_resume() {}

 private:
  Handle handle_;
};

inline std::coroutine_handle<> Task::Return::await_suspend(Handle ended) noexcept {
  return ended.promise().caller;
}

}  // namespace unflake::simulated
