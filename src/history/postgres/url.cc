#include "history/postgres/url.h"

#include <string_view>
#include <vector>

#include "util/text.h"

namespace unflake {
namespace {

// Up to the last @, because who did not encode one in a password must not see half of it shown.
std::string without_credentials_password(const std::string& place) {
  const size_t scheme = place.find("://");
  const size_t user = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t at = place.rfind('@'), colon = place.find(':', user);
  if (at == std::string::npos || colon > at) return place;
  return place.substr(0, colon) + place.substr(at);
}

bool is_secret(std::string_view option) {
  return option.find("password=") != std::string_view::npos;
}

}  // namespace

std::string url_without_passwords(const std::string& url) {
  const size_t query = url.find('?', url.rfind('@') == std::string::npos ? 0 : url.find('@'));
  const std::string place = without_credentials_password(url.substr(0, query));
  if (query == std::string::npos) return place;
  std::vector<std::string> shown;
  for (const std::string& option : split(url.substr(query + 1), '&'))
    if (!is_secret(option)) shown.push_back(option);
  return shown.empty() ? place : place + "?" + join(shown, "&");
}

}  // namespace unflake
