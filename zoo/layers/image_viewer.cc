// A viewer measures the brightness of its image a little later, to be quick when it opens one.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "support/scheduler.h"

namespace {

struct Image {
  std::array<unsigned char, 640 * 480> pixels{};
};

std::unique_ptr<Image> load(unsigned char grey) {
  auto image = std::make_unique<Image>();
  image->pixels.fill(grey);
  return image;
}

long brightness_of(const Image& image) {
  const long sum = std::accumulate(image.pixels.begin(), image.pixels.end(), 0L);
  return sum / static_cast<long>(image.pixels.size());
}

class Viewer {
 public:
  explicit Viewer(base::Scheduler& later) : later_(later) {}

  void open(unsigned char grey) {
    image_ = load(grey);
    later_.after(base::Milliseconds(10), [this, image = image_.get()] {
      brightness_ = brightness_of(*image);  // critical
    });
  }

  void close() {
    image_.reset();  // barrier
  }

  long brightness() const { return brightness_; }

 private:
  base::Scheduler& later_;
  std::unique_ptr<Image> image_;
  long brightness_ = 0;
};

}  // namespace

int main() {
  base::Scheduler later("measuring");
  Viewer viewer(later);
  viewer.open(200);
  base::sleep_for(base::Milliseconds(80));  // somebody looks at it
  viewer.close();
  later.drain();
  std::printf("brightness %ld\n", viewer.brightness());
  return EXIT_SUCCESS;
}
