#include "util/json.h"

namespace unflake {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

template <typename AnyJson>
std::string text_of(const AnyJson& json, int indent) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace

Json parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

Json parse_json_or_throw(std::string_view text) {
  return Json::parse(text);
}

std::string json_text(const Json& json, int indent) {
  return text_of(json, indent);
}

std::string json_text(const OrderedJson& json, int indent) {
  return text_of(json, indent);
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace unflake
