# A thin front for CMake: `cmake --list-presets` shows what stands behind it.
