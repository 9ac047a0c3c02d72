// One of many small libraries: functions for the linker to resolve, addresses for the loader to
// relocate, and a static constructor.
#include <cstdlib>

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define NAME(prefix) JOIN(prefix, LIBRARY_NUMBER)

struct NAME(Shape) {
  virtual ~NAME(Shape)() = default;
  virtual int corners() const { return LIBRARY_NUMBER; }
};

namespace {

const char* const words[] = {"one", "two", "three", "four", "five", "six", "seven", "eight"};

struct Registry {
  Registry() : shape(new NAME(Shape)) {
    for (const char* word : words) letters += static_cast<int>(*word);
  }
  ~Registry() { delete shape; }
  NAME(Shape) * shape;
  int letters = std::abs(-LIBRARY_NUMBER);
};

Registry registry;

}  // namespace

extern "C" int NAME(library_function_)() {
  return registry.shape->corners() + registry.letters;
}
