// An inspector looks while ninety-nine clerks deliver.
#include "support/staged_update.h"

int main(void) {
  return run_warehouse(99);
}
