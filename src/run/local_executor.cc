#include "run/local_executor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>

namespace unflake {
namespace {

int to_poll_time(std::optional<Duration> at_most) {
  if (!at_most) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*at_most).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 3600 * 1000));
}

Error supervisor_lost() {
  return internal_error("the process that supervises a test was killed", "",
                        "look for the out-of-memory killer in the kernel's log, then run again");
}

}  // namespace

Result<std::unique_ptr<LocalExecutor>> LocalExecutor::create(const LocalOptions& options,
                                                             Interrupts& interrupts) {
  std::unique_ptr<LocalExecutor> executor(new LocalExecutor(options, interrupts));
  for (size_t i = 0; i < options.jobs; ++i)
    if (const auto added = executor->add_slot(false); !added) return added.error();
  return executor;
}

LocalExecutor::~LocalExecutor() {
  for (const auto& slot : slots_) slot->supervisor.socket.reset();
  for (const auto& slot : slots_) ::waitpid(slot->supervisor.pid, nullptr, 0);
}

Result<void> LocalExecutor::add_slot(bool for_fixtures) {
  auto supervisor = start_supervisor();
  if (!supervisor) return supervisor.error();
  auto slot = std::make_unique<Slot>();
  slot->supervisor = std::move(*supervisor);
  slot->for_fixtures = for_fixtures;
  slots_.push_back(std::move(slot));
  return {};
}

LocalExecutor::Slot* LocalExecutor::slot_with(size_t ordered, bool for_fixtures) {
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) {
    return slot->ordered.size() == ordered && slot->for_fixtures == for_fixtures;
  });
  return found == slots_.end() ? nullptr : found->get();
}

Result<LocalExecutor::Slot*> LocalExecutor::slot_for(const Experiment& experiment) {
  if (Slot* idle = slot_with(0, experiment.keep_leftovers)) return idle;
  if (Slot* busy = experiment.keep_leftovers ? nullptr : slot_with(1, false)) return busy;
  if (const auto added = add_slot(experiment.keep_leftovers); !added) return added.error();
  return slots_.back().get();
}

size_t LocalExecutor::free_slots() const {
  const auto busy =
      std::ranges::count_if(slots_, [](const auto& slot) { return !slot->ordered.empty(); });
  return options_.jobs - std::min(options_.jobs, static_cast<size_t>(busy));
}

size_t LocalExecutor::queue_room() const {
  return static_cast<size_t>(std::ranges::count_if(
      slots_, [](const auto& slot) { return slot->ordered.size() == 1 && !slot->for_fixtures; }));
}

Launch LocalExecutor::launch_for(const Experiment& experiment) const {
  Launch launch;
  launch.command = experiment.test->command;
  launch.timeout = experiment.timeout;
  launch.grace = options_.grace;
  launch.limits = options_.limits;
  launch.core_dumps = options_.core_dumps;
  launch.keep_leftovers = experiment.keep_leftovers;
  return launch;
}

Ticket LocalExecutor::start(const Experiment& experiment) {
  const Ticket ticket = ++last_ticket_;
  const auto slot = slot_for(experiment);
  if (!slot) {
    broken_ = slot.error();
    return ticket;
  }
  (*slot)->ordered.push_back({ticket, experiment});
  if (!(*slot)->supervisor.launch(launch_for(experiment))) broken_ = supervisor_lost();
  return ticket;
}

std::optional<Wakeup> LocalExecutor::ready_interrupt() {
  const auto interrupt = interrupts_.next();
  if (!interrupt) return std::nullopt;
  if (*interrupt == Interrupt::status) return StatusAsked{};
  return Stopped{};
}

Wakeup LocalExecutor::finish(Slot& slot) {
  auto process = slot.supervisor.receive();
  if (!process) {
    broken_ = supervisor_lost();
    return Broken{*broken_};
  }
  const Ordered done = std::move(slot.ordered.front());
  slot.ordered.pop_front();
  Finished finished{done.ticket, {process->started, {}, std::move(*process)}, 0};
  finished.result.outcome = read_outcome(*done.experiment.test, finished.result.process);
  if (!slot.ordered.empty()) finished.next = slot.ordered.front().ticket;
  return finished;
}

Wakeup LocalExecutor::wait(std::optional<Duration> at_most) {
  if (broken_) return Broken{*broken_};
  std::vector<pollfd> watched{{interrupts_.fd(), POLLIN, 0}};
  std::vector<Slot*> busy;
  for (const auto& slot : slots_) {
    if (slot->ordered.empty()) continue;
    watched.push_back({slot->supervisor.socket.get(), POLLIN, 0});
    busy.push_back(slot.get());
  }
  if (::poll(watched.data(), watched.size(), to_poll_time(at_most)) <= 0) return Tick{};
  if (auto interrupt = ready_interrupt()) return *interrupt;
  for (size_t i = 0; i < busy.size(); ++i)
    if (watched[i + 1].revents) return finish(*busy[i]);
  return Tick{};
}

void LocalExecutor::cancel_all() {
  for (const auto& slot : slots_)
    if (!slot->ordered.empty()) slot->supervisor.cancel();
}

Duration LocalExecutor::elapsed() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - made_);
}

ProcessResult LocalExecutor::launch(const Command& command, Duration timeout) {
  Supervisor& supervisor = slots_.front()->supervisor;
  Launch launch;
  launch.command = command;
  launch.timeout = timeout;
  launch.grace = options_.grace;
  launch.limits = {64 << 20, 64 << 10, true};
  ProcessResult lost;
  lost.end = ProcessResult::End::not_started;
  lost.error = to_string(supervisor_lost());
  if (!supervisor.launch(launch)) return lost;
  for (;;) {
    pollfd watched[] = {{interrupts_.fd(), POLLIN, 0}, {supervisor.socket.get(), POLLIN, 0}};
    ::poll(watched, 2, -1);
    if (watched[0].revents && interrupts_.next() == Interrupt::stop) supervisor.cancel();
    if (watched[1].revents) return supervisor.receive().value_or(lost);
  }
}

}  // namespace unflake
