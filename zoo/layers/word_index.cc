// An index of words, told what to do line by line: "add TEXT", "count", "quit".
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/scheduler.h"

namespace {

class WordIndex {
 public:
  void add(std::string text) {
    indexer_.post([this, text = std::move(text)] { index(text); });
  }

  std::size_t size() const {
    const base::Lock lock(mutex_);
    return words_.size();
  }

 private:
  void index(const std::string& text) {
    std::istringstream stream(text);
    std::set<std::string> words;
    for (std::string word; stream >> word;) words.insert(word);
    const base::Lock lock(mutex_);
    words_.merge(words);  // critical
  }

  mutable base::Mutex mutex_;
  std::set<std::string> words_;
  base::Scheduler indexer_{"indexer"};
};

void report(const WordIndex& index) {
  const std::size_t words = index.size();  // barrier
  std::printf("%zu words\n", words);
  std::fflush(stdout);
}

}  // namespace

int main() {
  constexpr std::string_view add = "add ";
  WordIndex index;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (line == "count") report(index);
    if (line.starts_with(add)) index.add(line.substr(add.size()));
  }
}
