// An inspector looks while two clerks deliver.
#include "support/staged_update.h"

int main(void) {
  return run_warehouse(2);
}
