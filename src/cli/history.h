#pragma once

#include "cli/commands.h"

namespace unflake {

// `unflake history export`, `import` and `prune`; the words behind that.
int history_export_command(const Words& words);
int history_import_command(const Words& words);
int history_prune_command(const Words& words);

}  // namespace unflake
