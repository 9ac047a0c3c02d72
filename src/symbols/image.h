#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/site.h"
#include "util/result.h"

namespace unflake {

struct Function {
  std::string name;     // demangled with parameters; "" when only its extent is known
  std::string mangled;  // as in the symbol table
  uint64_t start = 0;
  uint64_t size = 0;
  std::string file;  // of its declaration; empty without debug information
  int line = 0;
};

// A row of a line table that begins a statement (is_stmt), or any row of a line where none does.
struct LineRow {
  uint64_t address = 0;
  uint32_t file = 0;  // in Image::files()
  int line = 0;
};

// A variable that has one place as long as the program runs, or the part of one at an address.
struct Variable {
  std::string name;  // "seats", "Pool::instance_", "ring.head_", "doors[1]"
  std::string type;  // of that part; empty: not known
  bool is_atomic = false;
};

struct Extent {
  uint64_t start = 0;
  uint64_t size = 0;
  bool operator==(const Extent&) const = default;
};

// A source file that was compiled without debug information while other code of the image has some.
// Functions are numbers in Image::functions().
struct BareUnit {
  std::string source;               // as the compiler named it, mostly without its folder
  std::vector<uint32_t> functions;  // surely its own
  std::vector<uint32_t> perhaps;    // its own, or of a file that was linked next to it
};

// A function of another library, and where this image enters it.
struct Import {
  std::string name;  // mangled
  uint64_t entry = 0;
};

// What an executable or library says about its code. All addresses are those of the ELF file:
// address in memory - load bias. Each part is read when first asked for, and kept:
// not for several threads at once.
class Image {
 public:
  static Result<std::shared_ptr<const Image>> open(const std::string& path);
  virtual ~Image() = default;

  virtual const std::string& path() const = 0;
  virtual const std::string& build_id() const = 0;  // bytes
  virtual bool has_debug_information() const = 0;
  virtual std::string why_no_debug_information() const = 0;  // and what to do about it

  // Innermost first. For a return address ask for the byte before it. Empty: no code there.
  virtual std::vector<Frame> frames_at(uint64_t address) const = 0;
  // All functions with code, ordered by start; from the symbol table, DWARF and .eh_frame.
  virtual std::span<const Function> functions() const = 0;
  virtual std::span<const LineRow> lines() const = 0;  // ordered by address
  virtual std::span<const std::string> files() const = 0;
  // The bytes of the file at this address, for at most `size`; fewer at the end of a segment.
  virtual std::span<const uint8_t> code_at(uint64_t address, size_t size) const = 0;
  // The code of the functions that are declared in such a file, less what was inlined into them
  // from other files. Ordered, without overlaps; empty without debug information.
  using FileFilter = std::function<bool(const std::string& file)>;
  virtual std::vector<Extent> code_from(const FileFilter&) const { return {}; }
  virtual std::optional<Variable> variable_at(uint64_t) const { return std::nullopt; }
  // Ordered by entry.
  virtual std::vector<Import> imports() const { return {}; }
  // Empty when the image has no debug information at all.
  virtual std::span<const BareUnit> bare_units() const { return {}; }
};

// What a name refers to. Several functions when they are overloads or instances of one template;
// none and some suggestions when the name is unknown or could be several.
struct FunctionMatches {
  std::vector<const Function*> functions;  // in the order of their addresses; as long as the image
  std::vector<std::string> suggestions;    // qualified names
};

// By qualified name, or the end of one that is unique: "Server::push" for "app::Server::push".
// Template arguments may be left out.
FunctionMatches find_functions(const Image& image, std::string_view name);

struct LineMatch {
  std::string file;
  int line = 0;                     // the next one that has code when the wanted one has none
  std::vector<uint64_t> addresses;  // the first of each copy of the line: inlined ones, instances
  std::vector<std::string> suggestions;  // files, when none or more than one could be meant
};

// Where a source line begins. The file is given by its path or by the end of it.
LineMatch addresses_of_line(const Image& image, std::string_view file, int line);

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
