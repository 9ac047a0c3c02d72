#pragma once

#include <functional>
#include <string>
#include <vector>

#include "web/results_client.h"

namespace unflake {

// Reports that could not be delivered, on disk until they are. Each is a copy of the report and,
// written last, what goes along with it; the token is not kept.
class Outbox {
 public:
  explicit Outbox(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Safe on disk when it returns. The same report is kept once, however often it is.
  Result<void> keep(const ReportFile& file, const Delivery& delivery, const std::string& server);

  struct Flushed {
    int64_t delivered = 0, left = 0;
    int64_t elsewhere = 0;        // for other servers
    bool is_busy = false;         // another process is sending them
    std::vector<Error> problems;  // one for each report that was rejected, and is put aside
  };
  using Send = std::function<Delivered(const ReportFile& file, const Delivery& delivery)>;
  // Sends what waits for this server, oldest first, until one has to wait again.
  Result<Flushed> flush(const std::string& server, const Send& send);

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

// In the first of the folders for such things that can be made.
std::string default_outbox_folder();

}  // namespace unflake
