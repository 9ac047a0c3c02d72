#include "races.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "markdown.h"
#include "util/json.h"
#include "util/paths.h"
#include "util/text.h"

namespace unflake::eval {
namespace {

using nlohmann::json;

constexpr double least_share = 0.9;

// "    #1 sell /src/zoo/seats.c:11 (seats+0x12f1)"
std::optional<std::string> place_in(std::string_view line, std::string_view folder) {
  const size_t path = line.find(folder);
  if (path == std::string_view::npos) return std::nullopt;
  const size_t start = line.rfind(' ', path) + 1, end = std::min(line.find(' ', path), line.size());
  const std::vector<std::string> parts = split(line.substr(start, end - start), ':');
  if (parts.size() < 2) return std::nullopt;
  return base_name(parts[0]) + ":" + parts[1];
}

void add(RacingLines& races, const std::vector<std::string>& places) {
  if (places.size() != 2) return;
  races.emplace(std::min(places[0], places[1]), std::max(places[0], places[1]));
}

// Of each of the two stacks that come first in a report, the innermost place.
class TsanReports {
 public:
  explicit TsanReports(std::string_view folder) : folder_(folder) {}

  void read(std::string_view line) {
    const std::string_view text = trim(line);
    if (text.starts_with("WARNING: ThreadSanitizer")) {
      end();
      is_race_ = text.find("data race") != std::string_view::npos;
    } else if (text.empty()) {
      ++stacks_;
      is_placed_ = false;
    } else if (is_race_ && stacks_ < 2 && !is_placed_ && text.starts_with("#")) {
      const auto place = place_in(text, folder_);
      if (place) places_.push_back(*place);
      is_placed_ = place.has_value();
    }
  }

  void end() {
    add(races_, places_);
    places_.clear();
    stacks_ = 0;
    is_placed_ = is_race_ = false;
  }

  RacingLines races() const { return races_; }

 private:
  std::string_view folder_;
  RacingLines races_;
  std::vector<std::string> places_;
  int stacks_ = 0;
  bool is_race_ = false, is_placed_ = false;
};

std::optional<std::string> place_of(const json& access, std::string_view folder) {
  for (const json& frame : access.value("stack", json::array())) {
    const std::string file = frame.value("file", "");
    if (file.find(folder) != std::string::npos)
      return fmt::format("{}:{}", base_name(file), frame.value("line", 0));
  }
  return std::nullopt;
}

bool is_near_place(const std::string& a, const std::string& b) {
  const auto in_a = split(a, ':'), in_b = split(b, ':');
  return in_a[0] == in_b[0] &&
         std::abs(std::atoi(in_a[1].c_str()) - std::atoi(in_b[1].c_str())) <= 1;
}

// The two are built with different options, and an optimiser reads a variable where it needs it.
bool is_among(const std::pair<std::string, std::string>& race, const RacingLines& others) {
  return std::ranges::any_of(others, [&](const auto& other) {
    return (is_near_place(race.first, other.first) && is_near_place(race.second, other.second)) ||
           (is_near_place(race.first, other.second) && is_near_place(race.second, other.first));
  });
}

size_t known_to(const RacingLines& others, const RacingLines& races) {
  return static_cast<size_t>(
      std::ranges::count_if(races, [&](const auto& race) { return is_among(race, others); }));
}

std::string only_in(const RacingLines& these, const RacingLines& not_those) {
  std::vector<std::string> texts;
  for (const auto& race : these)
    if (!is_among(race, not_those)) texts.push_back(race.first + " and " + race.second);
  return join(texts, ", ");
}

}  // namespace

RacingLines races_of_tsan(std::string_view output, std::string_view folder) {
  TsanReports reports(folder);
  for (const std::string_view line : split_lines(output)) reports.read(line);
  reports.end();
  return reports.races();
}

RacingLines races_of_unflake(const std::string& output, std::string_view folder) {
  RacingLines races;
  const json report = parse_json(output);
  if (!report.is_object()) return races;
  for (const json& race : report.value("races", json::array())) {
    std::vector<std::string> places;
    for (const json& access : race.value("accesses", json::array()))
      if (const auto place = place_of(access, folder)) places.push_back(*place);
    add(races, places);
  }
  return races;
}

std::vector<Score> race_scores(const std::vector<MeasuredRaces>& all) {
  size_t known = 0, found = 0, sound = 0, accused = 0;
  for (const MeasuredRaces& one : all) {
    known += one.tsan.size();
    found += known_to(one.unflake, one.tsan);
    sound += one.is_sound;
    accused += one.is_sound && !one.unflake.empty();
  }
  return {{"Pairs of lines that ThreadSanitizer reports and unflake lists",
           fmt::format("{} of {}", found, known), "90 %",
           static_cast<double>(found) >= least_share * static_cast<double>(known)},
          {"Sound programs in which unflake lists a race", fmt::format("{} of {}", accused, sound),
           "0", accused == 0}};
}

std::string races_section(const std::vector<MeasuredRaces>& all, const RaceSettings& settings,
                          const Surroundings& where) {
  std::string text = fmt::format(
      "{}\n\n`unflake races` on the programs of [zoo/interleavings](../zoo/interleavings) as they "
      "are, with {} schedules each, and\nThreadSanitizer on the same sources built for it, with {} "
      "plain runs each. A race is a pair of lines of the program; they may\nbe off by one, because "
      "the two builds are optimised differently. What only one of the two lists "
      "is named: a tool that runs a program without choosing its schedules sees fewer orders,\nand "
      "one that does not see the program's source cannot tell a plain access from a relaxed "
      "atomic.\n\n",
      races_heading, settings.runs, settings.tsan_runs);
  text += to_string(where) + "\n\n" + targets_text(race_scores(all)) + "\n";
  text += table_head({"program", "sound", "both", "only ThreadSanitizer", "only unflake",
                      "ThreadSanitizer, s", "unflake, s"});
  for (const MeasuredRaces& one : all)
    text += row({one.program, one.is_sound ? "yes" : "no",
                 std::to_string(known_to(one.unflake, one.tsan)), only_in(one.tsan, one.unflake),
                 only_in(one.unflake, one.tsan), fmt::format("{:.1f}", one.tsan_seconds),
                 fmt::format("{:.1f}", one.unflake_seconds)});
  return text;
}

}  // namespace unflake::eval
