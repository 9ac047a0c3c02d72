#include <gmock/gmock.h>
#include <sys/resource.h>

#include "support/read_report.h"

namespace unflake {
namespace {

using testing::HasSubstr;

std::string refusal(const ReadRuns& read) {
  return read.report.refused ? to_string(*read.report.refused) : "";
}

std::string in_case(const std::string& inside) {
  return "<testsuite name='s'><testcase name='a'/><testcase name='b'>" + inside +
         "</testcase></testsuite>";
}

// One byte at a time, so that everything is cut everywhere.
ByteSource byte_by_byte(std::string text) {
  return [text = std::move(text), at = size_t{0}](std::span<char> into) mutable -> Result<size_t> {
    if (at == text.size()) return size_t{0};
    into[0] = text[at++];
    return size_t{1};
  };
}

// `first`, then `piece` for ever.
ByteSource endless(std::string first, std::string piece) {
  return [=, is_first = true](std::span<char> into) mutable -> Result<size_t> {
    const std::string& bytes = std::exchange(is_first, false) ? first : piece;
    return bytes.copy(into.data(), into.size());
  };
}

long peak_kilobytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Sanitizers shadow memory, up to three times its size, and keep what was freed for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long memory_factor = 4;
#else
constexpr long memory_factor = 1;
#endif

TEST(HostileReports, An_entity_bomb_is_refused) {
  std::string bomb = "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += std::string("<!ENTITY ") + c + " '&" + char(c - 1) + ";&" + char(c - 1) + ";'>";
  const ReadRuns read = read_report(bomb + "]><testsuite><testcase name='&y;'/></testsuite>");
  EXPECT_TRUE(read.runs.empty());
  EXPECT_THAT(refusal(read), HasSubstr("declares entities"));
}

TEST(HostileReports, An_external_entity_is_not_loaded) {
  const ReadRuns read = read_report(
      "<!DOCTYPE testsuite SYSTEM 'file:///etc/passwd'><testsuite name='s'><testcase name='a'/>"
      "</testsuite>");
  EXPECT_EQ(read.ids(), "s:a\n");
  EXPECT_THAT(refusal(read_report("<!DOCTYPE t [<!ENTITY x SYSTEM '/etc/passwd'>]><t>&x;</t>")),
              HasSubstr("declares entities"));
}

TEST(HostileReports, Deep_nesting_is_refused_and_what_stood_before_is_kept) {
  std::string deep = "<testsuites><testsuite name='s'><testcase name='a'/>";
  for (int i = 0; i < 100'000; ++i) deep += "<testsuite>";
  const ReadRuns read = read_report(deep);
  EXPECT_EQ(read.runs.size(), 1u);
  EXPECT_THAT(refusal(read), HasSubstr("nested deeper than 256"));
}

TEST(HostileReports, An_attribute_that_does_not_end_is_refused_in_bounded_memory) {
  const long before = peak_kilobytes();
  const ReadRuns read = read_report(
      endless("<testsuite><testcase name='a'/><testcase name='", std::string(65536, 'x')), {});
  EXPECT_EQ(read.runs.size(), 1u);
  EXPECT_THAT(refusal(read), HasSubstr("more than 16 MiB"));
  EXPECT_LT(peak_kilobytes() - before, 64 * 1024 * memory_factor);
}

TEST(HostileReports, A_comment_that_does_not_end_is_refused) {
  const ReadRuns read = read_report(endless("<testsuite><!-- ", std::string(65536, 'x')), {});
  EXPECT_THAT(refusal(read), HasSubstr("more than 16 MiB"));
}

TEST(HostileReports, Output_of_any_length_takes_bounded_memory) {
  const long before = peak_kilobytes();
  int64_t left = 64 * 1024 * 1024;
  const std::string head = "<testsuite name='s'><testcase name='a'><failure>first ";
  const std::string tail = " last</failure></testcase></testsuite>";
  const ReadRuns read = read_report(
      [&, is_first = true](std::span<char> into) mutable -> Result<size_t> {
        if (std::exchange(is_first, false)) return head.copy(into.data(), into.size());
        if (left < 0) return size_t{0};
        left -= static_cast<int64_t>(into.size());
        if (left < 0) return tail.copy(into.data(), into.size());
        std::ranges::fill(into, 'x');
        return into.size();
      },
      {});
  ASSERT_EQ(read.runs.size(), 1u);
  EXPECT_LE(read.runs[0].output.size(), longest_kept_output);
  EXPECT_TRUE(read.runs[0].output.starts_with("first"));
  EXPECT_THAT(read.runs[0].output, HasSubstr(" last"));
  EXPECT_LT(peak_kilobytes() - before, 32 * 1024 * memory_factor);
}

TEST(HostileReports, Bytes_that_XML_cannot_hold_are_replaced) {
  const std::string text = in_case(
      "<failure message='\x1B[31m'>\xFF\xC3( \x01 &#27; &#x0; &#xD800; "
      "gr\xC3\xB6\xC3\x9F"
      "e &lt;b&gt;</failure>");
  const ReadRuns read = read_report(text);
  EXPECT_FALSE(read.report.refused) << refusal(read);
  ASSERT_EQ(read.runs.size(), 2u);
  EXPECT_THAT(read.runs[1].output, HasSubstr("gr\xC3\xB6\xC3\x9F"
                                             "e <b>"));
  EXPECT_THAT(read.runs[1].output, HasSubstr("\xEF\xBF\xBD"));
}

TEST(HostileReports, A_source_of_single_bytes_is_read_the_same) {
  const std::string text = in_case(
                               "<failure message='&#27;&amp;&#228;'>\xC3\xB6 \xE8\xA9\xA6 \xFF "
                               "&#x1b; &#65;</failure>") +
                           "<!-- end -->\n";
  const ReadRuns whole = read_report(text), cut = read_report(byte_by_byte(text), {});
  EXPECT_FALSE(cut.report.refused) << refusal(cut);
  ASSERT_EQ(cut.runs.size(), whole.runs.size());
  EXPECT_EQ(cut.runs[1].output, whole.runs[1].output);
  EXPECT_THAT(whole.runs[1].output, HasSubstr("\xC3\xB6 \xE8\xA9\xA6 \xEF\xBF\xBD"));
}

TEST(HostileReports, Reads_UTF_16_by_its_mark) {
  const std::u16string text =
      u"\xFEFF<testsuite name='s'><testcase name='gr\u00F6\u00DFe \U0001F600'/></testsuite>";
  const std::string little(reinterpret_cast<const char*>(text.data()), text.size() * 2);
  std::string big = little;
  for (size_t i = 0; i < big.size(); i += 2) std::swap(big[i], big[i + 1]);
  for (const std::string& bytes : {little, big})
    EXPECT_EQ(read_report(byte_by_byte(bytes), {}).ids(),
              "s:gr\xC3\xB6\xC3\x9F"
              "e \xF0\x9F\x98\x80\n");
}

TEST(HostileReports, Reads_the_encodings_of_western_europe) {
  const std::string body = "'?><testsuite name='s'><testcase name='\xF6\x80'/></testsuite>";
  EXPECT_EQ(only_run("<?xml version='1.0' encoding='windows-1252" + body).test.name,
            "\xC3\xB6\xE2\x82\xAC");
  EXPECT_EQ(only_run("<?xml version='1.0' encoding='ISO-8859-1" + body).test.name,
            "\xC3\xB6\xC2\x80");
  EXPECT_THAT(refusal(read_report("<?xml version='1.0' encoding='EBCDIC-US" + body)),
              HasSubstr("ebcdic-us"));
}

TEST(HostileReports, What_stands_before_the_document_is_passed_over) {
  EXPECT_EQ(read_report("\xEF\xBB\xBF<testsuite name='s'><testcase name='a'/></testsuite>").ids(),
            "s:a\n");
  EXPECT_EQ(read_report("\n\nwarning: 1 < 2\n<?xml version='1.0'?><testsuite name='s'>"
                        "<testcase name='a'/></testsuite>")
                .ids(),
            "s:a\n");
}

TEST(HostileReports, Two_documents_in_one_file_are_both_read) {
  const std::string text =
      "<?xml version='1.0'?>\n<testsuites><testsuite name='s'><testcase name='a'/></testsuite>"
      "</testsuites>\nnoise\n<?xml version='1.0'?><testsuite name='t'><testcase name='b'/>"
      "</testsuite>";
  EXPECT_EQ(read_report(text).ids(), "s:a\nt:b\n");
  EXPECT_EQ(read_report(byte_by_byte(text), {}).ids(), "s:a\nt:b\n");
}

TEST(HostileReports, A_second_document_is_found_wherever_pieces_end) {
  const std::string first = "</testsuite>",
                    second =
                        "<?xml version='1.0'?><testsuite name='t'><testcase name='b'/></testsuite>";
  const std::string head = "<testsuite name='s'><testcase name='a'/>";
  for (size_t before = 0; before < 20; ++before) {
    const std::string padding(1024 * 1024 - head.size() - before, ' ');
    EXPECT_EQ(read_report(head + padding + first + "\n" + second).ids(), "s:a\nt:b\n") << before;
  }
}

TEST(HostileReports, Of_a_report_that_was_cut_short_the_beginning_counts) {
  const std::string whole = in_case("<failure>x</failure>");
  for (size_t size = whole.find("'a'/>") + 5; size < whole.size() - 1; ++size) {
    const ReadRuns read = read_report(std::string_view(whole).substr(0, size));
    EXPECT_GE(read.runs.size(), 1u) << size;
    EXPECT_THAT(refusal(read), HasSubstr("cut short")) << size;
  }
}

TEST(HostileReports, What_is_no_report_is_told_apart) {
  EXPECT_THAT(refusal(read_report("")), HasSubstr("is empty"));
  EXPECT_THAT(refusal(read_report("just words")), HasSubstr("is not XML"));
  EXPECT_THAT(refusal(read_report("<html><body/></html>")), HasSubstr("not a test report"));
  EXPECT_THAT(refusal(read_report("\x1F\x8B\x08 and so on")), HasSubstr("gunzip"));
  EXPECT_THAT(refusal(read_report(std::string(200'000, 'x'))), HasSubstr("is not XML"));
}

TEST(HostileReports, A_refusal_names_line_and_column) {
  EXPECT_THAT(refusal(read_report("<testsuite>\n<testcase name='a'/>\n  <a></b></testsuite>")),
              HasSubstr("report.xml:3:8"));
}

TEST(HostileReports, Cases_of_the_same_name_are_runs_of_their_own) {
  const ReadRuns read = read_report(
      "<testsuite name='s'><testcase name='a'/><testcase name='a'/><testcase "
      "name='a'/></testsuite>");
  ASSERT_EQ(read.runs.size(), 3u);
  EXPECT_LT(read.runs[0].started, read.runs[1].started);
  EXPECT_LT(read.runs[1].started, read.runs[2].started);
  EXPECT_EQ(read.runs[0].started, fallback_time);
}

TEST(HostileReports, Long_names_stay_different) {
  const std::string longer(5000, 'n');
  const ReadRuns read = read_report("<testsuite name='s'><testcase name='" + longer +
                                    "1'/><testcase name='" + longer + "2'/></testsuite>");
  ASSERT_EQ(read.runs.size(), 2u);
  EXPECT_LE(read.runs[0].test.name.size(), 1000u);
  EXPECT_NE(read.runs[0].test, read.runs[1].test);
}

TEST(HostileReports, Many_failures_of_one_case_are_bounded) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += "<flakyFailure message='x'>y</flakyFailure>";
  EXPECT_LE(read_report(in_case(many)).runs.size(), 102u);
}

TEST(HostileReports, An_error_of_the_taker_ends_the_reading) {
  int taken = 0;
  const auto report = read_results(bytes_of_text("<testsuite><testcase/><testcase/></testsuite>"),
                                   {}, [&](std::span<RunRecord>) -> Result<void> {
                                     ++taken;
                                     return internal_error("the disk is full");
                                   });
  EXPECT_FALSE(report);
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace unflake
