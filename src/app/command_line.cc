#include "app/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "util/text.h"

namespace unflake {

int Page::write_out() const {
  const bool written = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size();
  if ((written && std::fflush(stdout) == 0) || errno == EPIPE)
    return static_cast<int>(ExitCode::success);
  return report_error(
      internal_error(fmt::format("standard output cannot be written: {}", std::strerror(errno))));
}

namespace {

CLI::Option* add_duration(CLI::App& app, const std::string& names, std::optional<Duration>& value,
                          const std::string& description) {
  const auto read = [&value, names](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) throw CLI::ValidationError(names, to_string(duration.error()));
    value = *duration;
  };
  return app.add_option_function<std::string>(names, read, description)->type_name("DURATION");
}

}  // namespace

int report_error(const Error& error) {
  fmt::print(stderr, "unflake: {}\n", printable(error.what, LineFeeds::keep));
  if (!error.where.empty()) fmt::print(stderr, "  at: {}\n", printable(error.where));
  if (!error.next.empty())
    fmt::print(stderr, "  next: {}\n", printable(error.next, LineFeeds::keep));
  return static_cast<int>(exit_code_of(error));
}

Option Option::takes(const std::string& what) const {
  return Option(option_->type_name(what));
}

Option Option::required() const {
  return Option(option_->required());
}

Option Option::between(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::IsMember(words)));
}

Option Option::excludes(const std::string& other) const {
  return Option(option_->excludes(other));
}

Option Option::from_environment(const std::string& variable) const {
  return Option(option_->envname(variable));
}

Option Option::separated_by(char delimiter) const {
  return Option(option_->delimiter(delimiter));
}

Option Option::one_at_a_time() const {
  return Option(option_->allow_extra_args(false));
}

CommandLine::CommandLine(const std::string& command, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, "unflake " + command)) {
  app_->get_formatter()->column_width(34);
}

CommandLine::~CommandLine() = default;

template <OptionValue Value>
Option CommandLine::option(const std::string& names, Value& value, const std::string& description) {
  if constexpr (std::same_as<Value, std::optional<Duration>>)
    return Option(add_duration(*app_, names, value, description));
  else
    return Option(app_->add_option(names, value, description));
}

template Option CommandLine::option(const std::string&, std::string&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<std::string>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, std::vector<std::string>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, int&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<int>&, const std::string&);
template Option CommandLine::option(const std::string&, uint64_t&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<uint64_t>&,
                                    const std::string&);
template Option CommandLine::option(const std::string&, std::optional<Duration>&,
                                    const std::string&);

Option CommandLine::flag(const std::string& names, bool& value, const std::string& description) {
  return Option(app_->add_flag(names, value, description));
}

Option CommandLine::flag(const std::string& names, std::optional<bool>& value,
                         const std::string& description) {
  const auto read = [&value](int64_t times) { value = times > 0; };
  return Option(app_->add_flag_function(names, read, description));
}

std::optional<int> CommandLine::parse(const Words& words) {
  try {
    std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
    app_->parse(reversed);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app_->help());
    return static_cast<int>(ExitCode::success);
  } catch (const CLI::ParseError& error) {
    return report_error(usage_error(
        error.what(), "", fmt::format("`{} --help` shows what it takes", app_->get_name())));
  }
}

}  // namespace unflake
