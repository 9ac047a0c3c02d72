#include "util/result.h"

namespace unflake {

std::string to_string(const Error& error) {
  std::string text = error.what;
  if (!error.where.empty()) text += " (" + error.where + ")";
  if (!error.next.empty()) text += "; " + error.next;
  return text;
}

}  // namespace unflake
