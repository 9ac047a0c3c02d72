#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "symbols/units.h"

namespace unflake {

// As c++filt prints it, with parameters; what is not mangled stays as it is.
std::string demangle(const char* mangled);

// "Server::push" of "void Server::push(int) const [clone .cold]": qualified, without return type
// and parameters, with the usual names of standard types. A lambda's call operator is
// "Server::start::{lambda}".
std::string qualified_name(std::string_view demangled);

// The standard library's spelled-out types by the names that people use, and lambdas without
// parameters and numbers: the same text from every compiler.
std::string without_noise(std::string_view name);

// Qualified names of functions, from their linkage names where there are any: functions without
// external linkage have none, and get theirs from the scopes around them.
class DieNames {
 public:
  explicit DieNames(const Units& units) : units_(units) {}

  const std::string& name_of(Dwarf_Die function);

 private:
  std::string compose(Dwarf_Die die, int depth);
  std::string name_with_linkage(Dwarf_Die die, int depth);
  std::string scope_name(Dwarf_Die die, int depth);

  const Units& units_;
  std::unordered_map<const void*, std::string> names_;  // by the address of the DIE
};

// As in the symbol table; null when the compiler gives none.
const char* linkage_name(Dwarf_Die* die);

}  // namespace unflake
