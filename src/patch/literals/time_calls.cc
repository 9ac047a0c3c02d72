#include "patch/literals/time_calls.h"

#include <algorithm>

#include "patch/literals/time_expression.h"
#include "patch/literals/time_numbers.h"
#include "util/text.h"

namespace unflake {
namespace {

struct KnownCall {
  std::string_view name;
  size_t index;  // of the time among the arguments
  double unit;   // nanoseconds of a plain number
};

// What the C library calls by these names; the API of such a call has the same name.
constexpr KnownCall c_calls[] = {
    {"usleep", 0, 1e3},
    {"sleep", 0, 1e9},
    {"nanosleep", 0, 1},
    {"clock_nanosleep", 2, 1},
    {"thrd_sleep", 0, 1},
    {"poll", 2, 1e6},
    {"ppoll", 2, 1},
    {"select", 4, 1},
    {"pselect", 4, 1},
    {"epoll_wait", 3, 1e6},
    {"epoll_pwait", 3, 1e6},
    {"epoll_pwait2", 3, 1},
    {"recvmmsg", 4, 1},
    {"setsockopt", 3, 1},
    {"alarm", 0, 1e9},
    {"ualarm", 0, 1e3},
    {"setitimer", 1, 1},
    {"timer_settime", 2, 1},
    {"timerfd_settime", 2, 1},
    {"pthread_cond_timedwait", 2, 1},
    {"pthread_cond_clockwait", 3, 1},
    {"pthread_mutex_timedlock", 1, 1},
    {"pthread_mutex_clocklock", 2, 1},
    {"pthread_rwlock_timedrdlock", 1, 1},
    {"pthread_rwlock_timedwrlock", 1, 1},
    {"pthread_timedjoin_np", 2, 1},
    {"sem_timedwait", 1, 1},
    {"sem_clockwait", 2, 1},
    {"cnd_timedwait", 2, 1},
    {"mtx_timedlock", 1, 1},
    {"semtimedop", 3, 1},
    {"mq_timedreceive", 4, 1},
    {"mq_timedsend", 4, 1},
};

constexpr std::string_view sleeping_calls[] = {"sleep_for", "sleep_until"};
constexpr std::string_view waiting_calls[] = {
    "wait_for",        "wait_until",        "try_lock_for",        "try_lock_until",
    "try_acquire_for", "try_acquire_until", "try_lock_shared_for", "try_lock_shared_until"};

template <size_t count>
bool contains(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const KnownCall* c_call(std::string_view name) {
  for (const KnownCall& known : c_calls)
    if (known.name == name) return &known;
  return nullptr;
}

bool is_sleep(std::string_view api) {
  return api.find("sleep") != std::string_view::npos;
}

struct Lines {
  int first = 0, last = 0;
  bool cover(int line) const { return first <= line && line <= last; }
};

Lines lines_of(CXCursor cursor) {
  const CXSourceRange range = clang().getCursorExtent(cursor);
  return {expanded_at(clang().getRangeStart(range)).line,
          expanded_at(clang().getRangeEnd(range)).line};
}

class CallFinder {
 public:
  CallFinder(const SourceUnit& unit, int line) : file_(unit.file()), line_(line) {}

  std::vector<CallAtLine> find(CXCursor root) {
    for (const CXCursor child : children(root))
      if (expanded_at(clang().getCursorLocation(child)).file == file_ &&
          lines_of(child).cover(line_))
        visit(child, 0, 0);
    std::vector<CallAtLine> calls;
    for (const Found& found : found_)
      if (found.call.distance < most_call_distance || found.statement == innermost_)
        calls.push_back(found.call);
    return calls;
  }

 private:
  struct Found {
    CallAtLine call;
    int statement;
  };

  // `statement` is the level of the nearest statement around.
  void visit(CXCursor cursor, int level, int statement) {
    if (level > deepest_syntax) return;
    if (clang().getCursorKind(cursor) == CXCursor_CallExpr)
      found_.push_back({{cursor, distance_of(cursor)}, statement});
    const bool is_block = clang().getCursorKind(cursor) == CXCursor_CompoundStmt;
    for (const CXCursor child : children(cursor)) {
      const bool covers = lines_of(child).cover(line_);
      if (!covers && (is_block || statement == 0)) continue;
      if (is_block && covers) innermost_ = std::max(innermost_, level + 1);
      visit(child, level + 1, is_block ? level + 1 : statement);
    }
  }

  int distance_of(CXCursor call) const {
    const Lines lines = lines_of(call);
    const int spelled = spelled_at(clang().getCursorLocation(call)).line;
    if (lines.first == line_ || spelled == line_) return 0;
    return lines.cover(line_) ? 1 : most_call_distance;
  }

  const std::string& file_;
  int line_;
  int innermost_ = 0;
  std::vector<Found> found_;
};

bool is_number_type(const std::string& type) {
  constexpr std::string_view types[] = {
      "int",       "unsigned int",       "long",   "unsigned long", "short", "unsigned short",
      "long long", "unsigned long long", "double", "float"};
  return contains(types, type);
}

bool may_be_time(CXCursor argument, bool numbers_too) {
  const std::string type = type_name(argument);
  return is_time_type(type) || type == "absl::Duration" || type == "absl::Time" ||
         (numbers_too && is_number_type(type));
}

// The argument, or what stands for it where it was left out.
std::optional<CXCursor> given(CXCursor call, const std::vector<CXCursor>& arguments, size_t index) {
  if (!is_left_out(arguments[index])) return arguments[index];
  return default_argument(clang().getCursorReferenced(call), index);
}

std::vector<TimeArgument> any_arguments(CXCursor call, const std::string& name, bool is_known) {
  std::vector<TimeArgument> found;
  const auto all = arguments(call);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!may_be_time(all[i], !is_known)) continue;
    if (const auto expression = given(call, all, i))
      found.push_back({name, *expression, 0, is_known, is_left_out(all[i])});
  }
  return found;
}

}  // namespace

std::vector<CallAtLine> calls_at(const SourceUnit& unit, int line) {
  return CallFinder(unit, line).find(unit.root());
}

std::vector<TimeArgument> time_arguments(CXCursor call, const std::string& api) {
  const std::string name = spelling(call);
  if (const KnownCall* known = c_call(name)) {
    const auto all = arguments(call);
    if (name != api || known->index >= all.size()) return {};
    return {{name, all[known->index], known->unit, true, false}};
  }
  if (contains(sleeping_calls, name) || contains(waiting_calls, name)) {
    if (contains(sleeping_calls, name) != is_sleep(api)) return {};
    return any_arguments(call, name, true);
  }
  const bool makes_a_time = may_be_time(call, false) || name == "count";
  if (makes_a_time || name.starts_with("operator")) return {};
  return any_arguments(call, name, false);
}

}  // namespace unflake
