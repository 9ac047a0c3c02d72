#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "agent/probed_run.h"

// Runs a program plainly and with probes, and says whether its output was the same:
//   torture AGENT [--entries|--lines|--instructions] [--one-shot] [--sites] [--also IMAGE]
//           [--per-test] PROGRAM [ARGUMENT...]
// With --per-test the results of GoogleTest's tests are compared instead, as their times differ.
namespace unflake {
namespace {

struct Request {
  std::string agent;
  ProbeSet::Where where = ProbeSet::Where::lines;
  uint8_t flags = 0;
  bool sites = false;
  bool per_test = false;
  std::vector<std::string> images;
  std::vector<std::string> command;
};

Request parse(int argc, char** argv) {
  Request request;
  request.agent = argv[1];
  int i = 2;
  for (; i < argc && std::strncmp(argv[i], "--", 2) == 0; ++i) {
    const std::string word = argv[i];
    if (word == "--entries") request.where = ProbeSet::Where::entries;
    if (word == "--instructions") request.where = ProbeSet::Where::instructions;
    if (word == "--one-shot") request.flags = protocol::probe_one_shot;
    if (word == "--sites") request.sites = true;
    if (word == "--per-test") request.per_test = true;
    if (word == "--also") request.images.push_back(argv[++i]);
  }
  request.command.assign(argv + i, argv + argc);
  request.images.insert(request.images.begin(), request.command.at(0));
  return request;
}

ProbeSet plan(const Request& request) {
  ProbeSet set;
  std::map<std::string_view, int> refused;
  for (const auto& image : request.images)
    for (const auto& place : set.add(image, request.where, request.flags)) ++refused[place.reason];
  if (request.sites) set.give_sites();
  for (const auto& [reason, count] : refused)
    std::printf("not probed: %d x %.*s\n", count, int(reason.size()), reason.data());
  return set;
}

std::string results_of_tests(const std::string& output) {
  static const std::regex line(R"(^\[ +(OK|FAILED|SKIPPED) +\] [^ ,(]+)", std::regex::multiline);
  std::multiset<std::string> results;
  for (std::sregex_iterator i(output.begin(), output.end(), line), end; i != end; ++i)
    results.insert(i->str());
  std::string text;
  for (const auto& result : results) text += result + "\n";
  return text;
}

// From the line on in which they begin to differ.
void show_difference(const ProbedRun& plain, const ProbedRun& probed) {
  constexpr int most = 2000;
  const auto [left, right] = std::mismatch(plain.output.begin(), plain.output.end(),
                                           probed.output.begin(), probed.output.end());
  const auto line = std::find(std::reverse_iterator(left), plain.output.rend(), '\n').base();
  const auto at = static_cast<size_t>(line - plain.output.begin());
  std::printf("DIFFERENT. Plain, status %d:\n%.*s\nWith probes, status %d:\n%.*s\n", plain.status,
              most, plain.output.c_str() + at, probed.status, most, probed.output.c_str() + at);
}

int compare(const Request& request) {
  const ProbeSet set = plan(request);
  const ProbedRun plain = run_probed("", {}, request.command);
  const ProbedRun probed = run_probed(request.agent, set, request.command);
  const auto shown = [&](const ProbedRun& run) {
    return request.per_test ? results_of_tests(run.output) : run.output;
  };
  const size_t hit =
      set.probes.size() - size_t(std::count(probed.hits.begin(), probed.hits.end(), 0u));
  std::printf("%zu probes, %zu hit, %lu hits; %.2f s, plain %.2f s\n", set.probes.size(), hit,
              static_cast<unsigned long>(total(probed.hits)), probed.cpu_seconds,
              plain.cpu_seconds);
  const bool same = shown(plain) == shown(probed) && plain.status == probed.status;
  if (probed.degraded != 0) std::printf("degraded: %u\n", probed.degraded);
  if (hit == 0) std::puts("no probe was hit");
  if (shown(plain).empty()) std::puts("there was nothing to compare");
  if (!same) show_difference(plain, probed);
  return same && hit > 0 && !shown(plain).empty() && probed.degraded == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unflake

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return unflake::compare(unflake::parse(argc, argv));
}
