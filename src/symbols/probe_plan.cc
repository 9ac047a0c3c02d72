#include "symbols/probe_plan.h"

#include <algorithm>
#include <array>

#include "symbols/displaced.h"

namespace unflake {
namespace {

constexpr size_t longest_instruction = 15;
constexpr int deepest_nesting = 16;

using Functions = std::span<const Function>;

struct Bounds {
  uint64_t start = 0;
  uint64_t end = 0;
};

// Assembly may leave out a function's size: it then ends where the next one begins.
Bounds extent_of(Functions functions, Functions::iterator function) {
  const auto next = std::find_if(function, functions.end(), [&](const Function& other) {
    return other.start > function->start;
  });
  if (function->size == 0 && next != functions.end()) return {function->start, next->start};
  return {function->start, function->start + function->size};
}

// The function that an address is in. Functions may be nested, by labels in assembly.
Bounds extent_around(const Image& image, uint64_t address) {
  const Functions functions = image.functions();
  auto function =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uint64_t wanted, const Function& other) { return wanted < other.start; });
  for (int i = 0; i < deepest_nesting && function != functions.begin(); ++i) {
    const Bounds extent = extent_of(functions, --function);
    if (address < extent.end) return extent;
  }
  return {};
}

// Disassembles one function, an instruction at a time.
class Sweep {
 public:
  Sweep() = default;
  Sweep(const Image& image, const Bounds& extent)
      : code_(image.code_at(extent.start, extent.end - extent.start)), start_(extent.start) {
    decode();
  }

  uint64_t address() const { return start_ + position_; }
  uint64_t end() const { return start_ + code_.size(); }
  std::span<const uint8_t> bytes() const { return code_.subspan(position_); }
  const Displaced& instruction() const { return instruction_; }
  bool lost() const { return instruction_.length == 0; }

  void next() {
    position_ += instruction_.length;
    decode();
  }

 private:
  void decode() { instruction_ = position_ < code_.size() ? displace(bytes()) : Displaced{}; }

  std::span<const uint8_t> code_;
  uint64_t start_ = 0;
  size_t position_ = 0;
  Displaced instruction_;
};

void add(ProbePlan& plan, const ProbeRequest& request, uint64_t address,
         const Displaced& instruction, uint8_t first_byte) {
  if (!instruction.refusal.empty()) {
    plan.unprobeable.push_back({address, instruction.refusal});
    return;
  }
  plan.probes.push_back({.address = protocol::make_address(request.image, address),
                         .target = instruction.target,
                         .site = protocol::none,
                         .length = instruction.length,
                         .kind = instruction.kind,
                         .aux = instruction.aux,
                         .flags = request.flags,
                         .first_byte = first_byte,
                         .sign = {}});
}

void add_at(ProbePlan& plan, const ProbeRequest& request, uint64_t address, Sweep& sweep) {
  while (!sweep.lost() && sweep.address() < address) sweep.next();
  if (sweep.address() > address)
    plan.unprobeable.push_back({address, "in the middle of an instruction"});
  else if (sweep.lost())
    plan.unprobeable.push_back({address, "behind bytes that are no instructions"});
  else
    add(plan, request, address, sweep.instruction(), sweep.bytes().front());
}

std::vector<uint64_t> ordered(std::vector<uint64_t> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

ProbePlan refuse_all(std::span<const uint64_t> addresses, std::string_view reason) {
  ProbePlan plan;
  for (const uint64_t address : addresses) plan.unprobeable.push_back({address, reason});
  return plan;
}

}  // namespace

std::string_view why_never_probed(std::string_view path) {
  static constexpr std::array taboo = {
      std::pair{"libc.so", "the C library"},
      std::pair{"libc-", "the C library"},
      std::pair{"ld-", "the dynamic linker"},
      std::pair{"libpthread", "the C library"},
      std::pair{"libunflake-agent", "unflake's agent"},
      std::pair{"libasan", "a sanitizer's run-time"},
      std::pair{"libtsan", "a sanitizer's run-time"},
      std::pair{"libubsan", "a sanitizer's run-time"},
      std::pair{"liblsan", "a sanitizer's run-time"},
      std::pair{"libhwasan", "a sanitizer's run-time"},
      std::pair{"libclang_rt.", "a sanitizer's run-time"},
      std::pair{"linux-vdso", "a part of the kernel"},
  };
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const auto& [prefix, reason] : taboo)
    if (name.starts_with(prefix)) return reason;
  return {};
}

ProbePlan plan_probes(const Image& image, std::span<const uint64_t> addresses,
                      const ProbeRequest& request) {
  const std::vector<uint64_t> places = ordered({addresses.begin(), addresses.end()});
  if (const auto reason = why_never_probed(image.path()); !reason.empty())
    return refuse_all(places, reason);
  ProbePlan plan;
  Bounds extent;
  Sweep sweep;
  for (const uint64_t address : places) {
    if (address >= extent.end) {
      extent = extent_around(image, address);
      sweep = Sweep(image, extent);
    }
    if (extent.end == 0)
      plan.unprobeable.push_back({address, "in no known function"});
    else
      add_at(plan, request, address, sweep);
  }
  return plan;
}

ProbePlan plan_entries(const Image& image, std::span<const Function> functions,
                       const ProbeRequest& request) {
  std::vector<uint64_t> entries;
  entries.reserve(functions.size());
  for (const Function& function : functions) entries.push_back(function.start);
  entries = ordered(std::move(entries));
  if (const auto reason = why_never_probed(image.path()); !reason.empty())
    return refuse_all(entries, reason);
  ProbePlan plan;
  plan.probes.reserve(entries.size());
  for (const uint64_t entry : entries) {
    const auto code = image.code_at(entry, longest_instruction);
    if (code.empty())
      plan.unprobeable.push_back({entry, "no code in the file"});
    else
      add(plan, request, entry, displace(code), code.front());
  }
  return plan;
}

std::vector<uint64_t> line_addresses(const Image& image,
                                     const std::function<bool(const Function&)>& wanted) {
  std::vector<uint64_t> addresses;
  const auto rows = image.lines();
  const Functions functions = image.functions();
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    if (!wanted(*function)) continue;
    const Bounds extent = extent_of(functions, function);
    auto row = std::lower_bound(
        rows.begin(), rows.end(), extent.start,
        [](const LineRow& left, uint64_t address) { return left.address < address; });
    for (; row != rows.end() && row->address < extent.end; ++row)
      if (row->line > 0) addresses.push_back(row->address);
  }
  return ordered(std::move(addresses));
}

std::vector<uint64_t> instruction_addresses(const Image& image, const Function& function) {
  std::vector<uint64_t> addresses;
  for (Sweep sweep(image, {function.start, function.start + function.size}); !sweep.lost();
       sweep.next())
    addresses.push_back(sweep.address());
  return addresses;
}

}  // namespace unflake
