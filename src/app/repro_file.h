#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/agent_command.h"
#include "app/project.h"
#include "model/detect_report.h"
#include "model/repair.h"
#include "model/repro.h"
#include "repro/relocation.h"
#include "search/detect/factor_search.h"
#include "search/reproduce/findings.h"
#include "store/store.h"
#include "suite/adapter.h"

namespace unflake {

// How the target of a test is found again. A plain command is known by its whole id, any other
// target by its name; a path inside the project is kept relative to it.
TargetRecord record_of(const Target& target, const Test& test, const Project& project);

struct SavedRepro {
  std::string path;
  bool kept_older = false;
};

// Writes a repro to `.unflake/repro/`. An older file of the same test and signature is replaced,
// unless it has a slack and the new one has none; one of another failure never is.
Result<SavedRepro> save_repro(const Project& project, const Repro& repro);

// Whether save_repro() will be able to, without creating anything yet: better before a search than
// after it.
Result<void> check_repro_folder(const Project& project);

// The file that a user means: a path, the bare name of one in `.unflake/repro/`, the first eight
// digits or more of its failure's signature, or the test that there is only one of.
Result<std::string> find_repro(const Project& project, const std::string& word);

Result<Repro> load_repro(const std::string& path);

struct FoundRepro {
  Project project;  // that the current folder is in
  std::string path;
  Repro repro;
};
Result<FoundRepro> find_named_repro(const std::string& word);

// The same for the files of `unflake repair` in `.unflake/fixes/`; one of the same test and
// signature is replaced.
Result<std::string> save_fix(const Project& project, const Fix& fix);
Result<Fix> load_fix(const Project& project, const std::string& word);

// Those in `.unflake/repro/`; files that cannot be read are left out.
std::vector<Repro> load_all_repros(const Project& project);

// Their root causes, as far as repros tell them by themselves, without the runs that `unflake
// explain` makes. Empty: the repro does not tell.
std::map<TestId, std::string> categories_of_repros(const Project& project);

// What a hunt for failures of this test has found, as a repro.
Repro repro_of(const Found& found, OneTest& one, uint64_t seed);

// How its sites look in the source, so that they are found again after an edit.
void describe(Repro& repro, const Profile& profile, const OneTest& one);

// How late this machine is, plain and while it is made scarce. What it cannot tell of counts as a
// quiet machine.
std::optional<MachineLateness> machine_lateness();

// The lines of a test from where its suite says that it begins to the end of its body, as far as
// its file can be found and read; without names when it cannot.
RecordedCleaner cleaner_of(const Test& test, const std::string& root);

// A repro of what was found, ready to be saved.
Repro repro_of(const OrderRelation& relation, const Conditions& conditions, OneTest& one);
Repro repro_of(const FactorFinding& finding, OneTest& one);

// What decides which factors can be tried here.
FactorFacts facts_of_machine();

struct PlainReplayOptions {
  std::string target;  // another one than was recorded; empty: that one
  int runs = 10;
  bool as_test = false, json = false;
  OneTestOptions one;
};

// Makes the runs of a repro that takes an order or a factor. Returns the exit code.
Result<int> replay_plain(const Project& project, const std::string& path, const Repro& repro,
                         const PlainReplayOptions& options, const std::string& command_line);

}  // namespace unflake
