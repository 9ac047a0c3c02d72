#pragma once

#include "app/options.h"

namespace unflake {

struct CommandEntry {
  const char* name;
  const char* summary;
  int (*run)(const Words& words);  // returns the exit code
};

int list_command(const Words& words);
int run_command(const Words& words);
int detect_command(const Words& words);
int plan_command(const Words& words);
int history_command(const Words& words);
int report_command(const Words& words);
int quarantine_command(const Words& words);
int stats_command(const Words& words);
int ingest_command(const Words& words);
int serve_command(const Words& words);
int trace_command(const Words& words);
int train_command(const Words& words);
int inject_command(const Words& words);
int reproduce_command(const Words& words);
int explore_command(const Words& words);
int races_command(const Words& words);
int orders_command(const Words& words);
int factors_command(const Words& words);
int replay_command(const Words& words);
int explain_command(const Words& words);
int prove_command(const Words& words);
int repair_command(const Words& words);
int balance_command(const Words& words);
int doctor_command(const Words& words);

// `unflake history export`, `import` and `prune`, with the words after that.
int history_export_command(const Words& words);
int history_import_command(const Words& words);
int history_prune_command(const Words& words);

}  // namespace unflake
