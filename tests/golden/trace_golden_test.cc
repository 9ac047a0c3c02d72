#include <gtest/gtest.h>

#include "golden/compare.h"
#include "golden/make_trace.h"
#include "report/trace_json.h"
#include "report/trace_text.h"
#include "util/json.h"

namespace unflake::golden {
namespace {

class TextSink : public Sink {
 public:
  void write(std::string_view bytes) override { text += bytes; }
  std::string text;
};

std::string chrome_text(const Trace& trace) {
  TextSink sink;
  write_chrome_trace(trace, sink);
  return sink.text;
}

TEST(TraceGolden, Terminal) {
  TraceTextOptions options;
  options.functions = true;
  compare_with_golden("trace.txt", trace_text(make_trace(), Style(false), options));
}

TEST(TraceGolden, Chrome_trace) {
  compare_with_golden("chrome_trace.json", chrome_text(make_trace()));
}

TEST(TraceGolden, Json) {
  unflake::Test test;
  test.id = {"queue_test", "Queue.Pops"};
  ExperimentResult result;
  result.outcome.kind = OutcomeKind::fail;
  result.outcome.duration = Duration(25'000);
  result.outcome.signature = "00000000000000aa";
  result.trace = std::make_shared<const Trace>(make_trace());
  compare_with_golden("trace.json", trace_json(test, result));
}

TEST(ChromeTrace, Is_valid_JSON_whatever_the_names_are) {
  Trace trace = make_trace();
  trace.threads[1].name.text = "\"\\\n\xff\xfe\x01";
  trace.failures[0].message = std::string("\0\x1b\"", 3);
  trace.processes[0].name = "\xc3";
  const auto json = parse_json_or_throw(chrome_text(trace));
  EXPECT_EQ(json["traceEvents"].size(), 2 + 2 * 3 + 4 + 1u);
}

TEST(ChromeTrace, Is_valid_JSON_when_there_is_nothing_to_tell) {
  EXPECT_TRUE(parse_json_or_throw(chrome_text({}))["traceEvents"].empty());
}

TEST(TraceText, Numbers_that_lead_nowhere_are_survived) {
  Trace trace = make_trace();
  trace.visits.push_back({77, 1, 1, {}});
  trace.failures[0].thread = 99;
  trace.failures[0].stack.frames[0].image = 55;
  EXPECT_FALSE(trace_text(trace, Style(true), {}).empty());
}

}  // namespace
}  // namespace unflake::golden
