#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/day.h"

namespace unflake {

// What an issue's body says to unflake, in comments that people do not see.
struct IssueMarks {
  int64_t cause = 0;
  std::string project;
  std::vector<std::string> signatures;  // by these it is found when the history was lost
  std::string owner;                    // who was told
  std::string expiry;                   // which end of quarantine was told; a day, or empty
  bool operator==(const IssueMarks&) const = default;
};

// Nothing when there is no part of unflake's in the body.
std::optional<IssueMarks> marks_in(std::string_view body);

// The part of a body that unflake writes: marks around a text, which is cut to `most` bytes.
std::string marked_part(const IssueMarks& marks, std::string_view text, size_t most);

// The body with its marked part replaced, or with one at its end. What people wrote stays.
std::string with_part(std::string_view body, std::string_view part);

// How many bytes a body takes without its marked part.
size_t size_without_part(std::string_view body);

}  // namespace unflake
