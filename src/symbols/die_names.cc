#include "symbols/die_names.h"

#include <dwarf.h>

#include "symbols/demangle.h"

namespace unflake {
namespace {

constexpr int deepest_scope = 32;

bool has_call_operator(Dwarf_Die die) {
  Dwarf_Die child;
  if (::dwarf_child(&die, &child) != 0) return false;
  do {
    const char* name = ::dwarf_diename(&child);
    if (name != nullptr && std::string_view(name) == "operator()") return true;
  } while (::dwarf_siblingof(&child, &child) == 0);
  return false;
}

std::string own_name(Dwarf_Die die) {
  const char* name = ::dwarf_diename(&die);
  if (name != nullptr) return without_noise(name);
  if (::dwarf_tag(&die) == DW_TAG_namespace) return "(anonymous namespace)";
  return has_call_operator(die) ? "{lambda}" : "{unnamed}";
}

std::string qualified(const std::string& scope, const std::string& name) {
  if (scope.empty()) return name;
  const bool is_lambda = scope.ends_with("{lambda}") && (name == "operator()" || name == "_FUN");
  return is_lambda ? scope : scope + "::" + name;
}

}  // namespace

const char* linkage_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (::dwarf_attr_integrate(die, name, &attribute) != nullptr)
      return ::dwarf_formstring(&attribute);
  return nullptr;
}

const std::string& DieNames::name_of(Dwarf_Die function) {
  const auto known = names_.find(function.addr);
  if (known != names_.end()) return known->second;
  return names_.emplace(function.addr, name_with_linkage(function, 0)).first->second;
}

std::string DieNames::name_with_linkage(Dwarf_Die die, int depth) {
  const char* linkage = linkage_name(&die);
  return linkage != nullptr ? qualified_name(demangle(linkage)) : compose(die, depth);
}

std::string DieNames::compose(Dwarf_Die die, int depth) {
  const Dwarf_Die declared = declared_die(die);
  return qualified(scope_name(declared, depth), own_name(declared));
}

std::string DieNames::scope_name(Dwarf_Die die, int depth) {
  if (depth > deepest_scope) return "";
  std::optional<Dwarf_Die> scope = units_.scope_around(die);
  if (!scope) return "";
  return ::dwarf_tag(&*scope) == DW_TAG_subprogram ? name_with_linkage(*scope, depth + 1)
                                                   : compose(*scope, depth + 1);
}

}  // namespace unflake
