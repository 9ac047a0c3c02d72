#include "app/agent_command.h"
#include "app/characteristic_file.h"
#include "app/listeners.h"
#include "app/options.h"
#include "cli/commands.h"
#include "report/trace_json.h"
#include "report/trace_text.h"
#include "util/files.h"

namespace unflake {
namespace {

constexpr const char* trace_help =
    R"(Runs one test under the agent and shows what it did: its threads, the sites where they
called timing APIs, how long they waited there, and where it failed.

  unflake trace ./server_test Server.Accepts               threads and sites, ready to copy
  unflake trace ./server_test Server.Accepts --out t.json  every call, for ui.perfetto.dev
  unflake trace ./server_test Server.Accepts --functions   which functions were executed, and
                                                           what they hint at
  unflake trace -- ./script.sh --fast                      any command, and what it starts

Exit code 0: the test passed or was skipped; 1: it failed; 2: bad usage; 4: unflake itself
failed; 128 + N: stopped by signal N.)";

struct TraceCommand {
  OneTestOptions one;
  std::string out;
  bool functions = false, no_stacks = false, json = false, full = false;
};

class TraceText : public Sink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

Result<Plan> plan_of(const TraceCommand& command) {
  auto off = command.one.groups_off();
  if (!off) return off.error();
  Plan plan;
  plan.agent = true;
  plan.calls = true;
  plan.stacks = !command.no_stacks;
  plan.functions = plan.callees = command.functions;
  plan.system_calls = command.one.system_calls;
  plan.groups_off = std::move(*off);
  return plan;
}

Result<void> write_out(const TraceCommand& command, const Trace& trace) {
  if (command.out.empty()) return {};
  TraceText sink;
  write_chrome_trace(trace, sink);
  return replace_file(command.out, sink.text);
}

void print(Page& page, const TraceCommand& command, const Test& test,
           const ExperimentResult& result, const CharacteristicSet& known) {
  const auto exposed = exposures(known, executed_functions(*result.trace));
  if (command.json) {
    page.print("{}", trace_json(test, result, exposed));
    return;
  }
  const Style style = style_for(command.one.colour);
  TraceTextOptions options;
  options.functions = command.functions;
  options.exposed = exposed;
  options.stacks = command.full ? StackDetail::full : StackDetail::project;
  page.print("{}{}", outcome_text(test, result, style, options.stacks),
             trace_text(*result.trace, style, options));
  if (!command.out.empty())
    page.print("\nThe whole trace is in {}: open it at https://ui.perfetto.dev\n", command.out);
}

Result<int> trace(const TraceCommand& command, const Words& words) {
  auto plan = plan_of(command);
  if (!plan) return plan.error();
  if (!command.out.empty())
    if (const auto ready = prepare_output_file(command.out); !ready) return ready.error();
  TrialHistory history;
  const auto one = OneTest::find(command.one, words);
  if (!one) return one.error();
  history.open(command.one, **one, command_line_of("trace", words));
  plan->extra_functions = (*one)->functions();
  const auto known = command.functions ? load_functions((*one)->project()) : CharacteristicSet{};
  if (!known) return known.error();
  plan->library_functions = tracing_plan(*known).library_functions;
  const auto result = (*one)->run({*plan, {}, ""}, TrialEnded::Purpose::trace);
  if ((*one)->stop_signal() != 0) return exit_code_of_signal((*one)->stop_signal());
  if (!result) return result.error();
  if (const auto written = write_out(command, *result->trace); !written) return written.error();
  Page page;
  print(page, command, (*one)->test(), *result, *known);
  const int written = page.write_out();
  if (written != 0) return written;
  CodeNotes notes;
  notes.add(*result->trace);
  if (!command.json) warn(notes.take(), command.one.colour);
  return static_cast<int>(result->outcome.failed() ? ExitCode::test_failed : ExitCode::success);
}

}  // namespace

int trace_command(const Words& words) {
  TraceCommand command;
  CommandLine line("trace", trace_help);
  command.one.add_to(line);
  line.option("--out", command.out, "write a Chrome trace, which Perfetto opens").takes("FILE");
  line.flag("--functions", command.functions, "list the functions of project code executed");
  line.flag("--no-stacks", command.no_stacks, "calls without their stacks: quicker");
  line.flag("--full", command.full, "stacks with the frames of libraries");
  line.flag("--json", command.json, "JSON instead of text");
  if (const auto done = line.parse(words)) return *done;
  const auto code = trace(command, words);
  return code ? *code : report_error(code.error());
}

}  // namespace unflake
