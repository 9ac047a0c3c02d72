#pragma once

#include <string>
#include <vector>

#include "cli/project.h"
#include "model/repro.h"

namespace unflake {

struct SavedRepro {
  std::string path;
  bool kept_older = false;
};

// Writes a repro to `.unflake/repro/`. An older file of the same test and signature is replaced,
// unless it has a slack and the new one has none; one of another failure never is.
Result<SavedRepro> save_repro(const Project& project, const Repro& repro);

// Whether save_repro() will be able to, without making anything yet: better before a search than
// after it.
Result<void> check_repro_folder(const Project& project);

// The file that a user means: a path, or the bare name of one in `.unflake/repro/`.
Result<std::string> find_repro(const Project& project, const std::string& word);

Result<Repro> load_repro(const std::string& path);

// Those in `.unflake/repro/`; files that cannot be read are left out.
std::vector<Repro> load_all_repros(const Project& project);

}  // namespace unflake
