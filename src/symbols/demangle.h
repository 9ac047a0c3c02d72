#pragma once

#include <string>
#include <string_view>

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

}  // namespace unflake
