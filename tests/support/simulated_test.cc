#include "support/simulated_test.h"

namespace unflake::simulated {
namespace {

SiteName site_at(const std::string& place, const std::string& api = "") {
  const size_t colon = place.rfind(':');
  SiteName site;
  site.file = place.substr(0, colon);
  site.line = std::stoi(place.substr(colon + 1));
  site.api = api;
  return site;
}

}  // namespace

Predicate is_set(std::string name) {
  return [name](const State& state) { return state.is_set(name); };
}

ThreadName thread_named(const std::string& text) {
  const std::hash<std::string> hash;
  return {text, hash(text), hash(text.substr(0, text.rfind('#')))};
}

Script& Script::add(Step step) {
  step.function = function_;
  if (step.kind != Step::Kind::enter) step.site.function = function_;
  steps_.push_back(std::move(step));
  return *this;
}

Script& Script::add_call(Step::Kind kind, const std::string& place, const std::string& api,
                         Step step) {
  step.kind = kind;
  step.site = site_at(place, api);
  return add(std::move(step));
}

Script& Script::work(Duration duration) {
  return add({.kind = Step::Kind::work, .duration = duration});
}

Script& Script::change(std::function<void(State&)> change) {
  return add({.kind = Step::Kind::change, .change = std::move(change)});
}

Script& Script::set(const std::string& variable, int value) {
  return change([variable, value](State& state) { state[variable] = value; });
}

Script& Script::check(const std::string& place, Predicate predicate) {
  return add(
      {.kind = Step::Kind::check, .site = site_at(place), .predicate = std::move(predicate)});
}

Script& Script::crash_unless(const std::string& place, Predicate predicate) {
  check(place, std::move(predicate));
  steps_.back().is_fatal = true;
  return *this;
}

Script& Script::enter(const std::string& function) {
  function_ = function;
  SiteName site;
  site.function = function;
  return add({.kind = Step::Kind::enter, .site = site});
}

Script& Script::line(const std::string& place) {
  return add({.kind = Step::Kind::line, .site = site_at(place)});
}

Script& Script::call(const std::string& place, const std::string& api) {
  return add_call(Step::Kind::call, place, api, {});
}

Script& Script::lock(const std::string& place, const std::string& mutex) {
  return add_call(Step::Kind::lock, place, "pthread_mutex_lock", {.object = mutex});
}

Script& Script::unlock(const std::string& place, const std::string& mutex) {
  return add_call(Step::Kind::unlock, place, "pthread_mutex_unlock", {.object = mutex});
}

Script& Script::sleep(const std::string& place, Duration duration, const std::string& processor) {
  return add_call(Step::Kind::sleep, place, "nanosleep",
                  {.duration = duration, .object = processor});
}

Script& Script::poll(const std::string& place, Duration interval, Predicate predicate) {
  return add_call(Step::Kind::sleep, place, "nanosleep",
                  {.duration = interval, .predicate = std::move(predicate)});
}

Script& Script::arm(const std::string& place, const std::string& condition, Duration after) {
  return add_call(Step::Kind::arm, place, "alarm", {.duration = after, .object = condition});
}

Script& Script::create(const std::string& place, const Script& thread) {
  return add_call(Step::Kind::create, place, "pthread_create", {.thread = &thread});
}

Script& Script::join(const std::string& place, const Script& thread) {
  return add_call(Step::Kind::join, place, "pthread_join", {.thread = &thread});
}

Script& Script::signal(const std::string& place, const std::string& condition) {
  return add_call(Step::Kind::signal, place, "pthread_cond_signal", {.object = condition});
}

Script& Script::broadcast(const std::string& place, const std::string& condition) {
  return add_call(Step::Kind::broadcast, place, "pthread_cond_broadcast", {.object = condition});
}

Script& Script::wait(const std::string& place, const std::string& condition, Predicate predicate,
                     const std::string& mutex) {
  return add_call(Step::Kind::wait, place, "pthread_cond_wait",
                  {.object = condition, .mutex = mutex, .predicate = std::move(predicate)});
}

Script& Script::wait_for(const std::string& place, const std::string& condition, Duration at_most,
                         Predicate predicate, const std::string& mutex) {
  return add_call(Step::Kind::wait_for, place, "pthread_cond_clockwait",
                  {.duration = at_most,
                   .object = condition,
                   .mutex = mutex,
                   .predicate = std::move(predicate)});
}

Script& Script::post(const std::string& place, const std::string& semaphore) {
  return add_call(Step::Kind::post, place, "sem_post", {.object = semaphore});
}

Script& Script::acquire(const std::string& place, const std::string& semaphore) {
  return add_call(Step::Kind::acquire, place, "sem_wait", {.object = semaphore});
}

Script& Script::repeat(int times, const std::function<void(Script&)>& body) {
  for (int i = 0; i < times; ++i) body(*this);
  return *this;
}

std::shared_ptr<const unflake::Test> test_of(const Program& program) {
  auto test = std::make_shared<unflake::Test>();
  test->id = {program.name, "Simulated"};
  test->framework = Framework::gtest;
  return test;
}

}  // namespace unflake::simulated
