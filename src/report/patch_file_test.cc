#include "report/repair_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unflake {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RepairPatch polling() {
  RepairPatch patch;
  patch.idiom = RepairIdiom::poll;
  patch.what = "instead of sleeping, it waits until the letter is there";
  patch.diff =
      "--- a/post.cc\n+++ b/post.cc\n@@ -1 +1 @@\n-sleep(1); // <b>\n+wait();\n"
      "--- /dev/null\n+++ b/unflake_sync.h\n@@ -0,0 +1 @@\n+#pragma once\n";
  patch.cautions = {"ready() is called again and again"};
  return patch;
}

ProofReport proof() {
  ProofReport report;
  report.test = {"post_test", "Post.Delivers"};
  report.signature = "8c7b35ab158e3e23";
  report.proof.verdict = Proof::Verdict::repaired;
  report.proof.runs = {{ProofRuns::Kind::plain, {7, 100}, {0, 100}, 0, 0, "", ""}};
  report.proof.runs_with_patch = 100;
  report.proof.rate_below = 0.03;
  report.proof.not_covered = {"a machine on which a thread is more than 1 s late"};
  return report;
}

TEST(PatchFile, Carries_its_proof_and_is_read_again) {
  const std::string text = patch_file_text(polling(), proof());
  const ProposedPatch read = read_patch_file("p.patch", text);
  EXPECT_EQ(read.what, polling().what);
  EXPECT_THAT(read.proof, HasSubstr("7 of 100 runs without the patch and in none of 100 with it"));
  EXPECT_THAT(read.not_covered, ElementsAre(HasSubstr("1 s late")));
  EXPECT_EQ(read.diff, polling().diff);
  EXPECT_THAT(text, HasSubstr("Repairs post_test:Post.Delivers [8c7b35ab158e3e23] by poll."));
  EXPECT_THAT(text, HasSubstr("Mind: ready() is called again and again"));
}

TEST(PatchFile, Text_of_others_does_not_begin_a_diff) {
  RepairPatch patch = polling();
  patch.what = "a\n--- a/other.cc\n+++ b/other.cc";
  EXPECT_EQ(read_patch_file("p", patch_file_text(patch, proof())).diff, patch.diff);
}

TEST(PatchFile, Of_somebody_else_has_no_proof) {
  const ProposedPatch read = read_patch_file("p.patch", polling().diff);
  EXPECT_EQ(read.proof, "");
  EXPECT_EQ(read.diff, polling().diff);
  EXPECT_THAT(proposed_patch_text(read, Style(false)), HasSubstr("it carries no proof"));
  EXPECT_EQ(read_patch_file("p", "").diff, "");
}

TEST(PatchFile, Is_shown_without_the_files_that_it_only_adds) {
  const ProposedPatch read = read_patch_file("p.patch", patch_file_text(polling(), proof()));
  for (const std::string& page : {proposed_patch_text(read, Style(false)),
                                  proposed_patch_markdown(read), proposed_patch_html(read)}) {
    EXPECT_THAT(page, HasSubstr("--- a/post.cc"));
    EXPECT_THAT(page, HasSubstr("wait();"));
    EXPECT_THAT(page, HasSubstr("none of 100 with it"));
    EXPECT_THAT(page, HasSubstr("b/unflake_sync.h"));
    EXPECT_THAT(page, HasSubstr("git apply p.patch"));
    EXPECT_THAT(page, Not(HasSubstr("#pragma once")));
  }
  EXPECT_THAT(proposed_patch_html(read), Not(HasSubstr("// <b>")));
}

TEST(PatchFile, Is_whole_in_json) {
  const auto json = proposed_patch_json(read_patch_file("p.patch", polling().diff));
  EXPECT_EQ(json["diff"], polling().diff);
  EXPECT_EQ(json["file"], "p.patch");
}

}  // namespace
}  // namespace unflake
