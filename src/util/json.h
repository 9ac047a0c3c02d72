#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace unflake {

// What is not JSON becomes a discarded value.
nlohmann::json parse_json(std::string_view text);
// The same, but throws nlohmann::json::exception, which says where it is wrong.
nlohmann::json parse_json_or_throw(std::string_view text);

// In one line, or indented. Bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

bool is_utf8(const std::string& text);

}  // namespace unflake
