#pragma once

// The newest answers about jobs that several viewers look at, so that they are made once for all of them.
// Thread-safe; two who ask for the same at the same time both make it.

#include <map>
#include <memory>
#include <string>

#include "base/guarded.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/board.h"

namespace paceline::dashboard {

class SharedTexts {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kMostBytes = 32 << 20;  // of them all

  // A text is made of these: it holds for as long as the board has the same.
  struct Source {
    std::shared_ptr<const kube::Json> object;
    Board::Series series;
    bool operator==(const Source&) const = default;
  };

  // Null: none is kept that is made of this.
  std::shared_ptr<const std::string> find(const std::string& asked, const Source& source) const {
    auto kept = kept_.lock();
    const auto found = kept->find(asked);
    return found != kept->end() && found->second.source == source ? found->second.text : nullptr;
  }
  void keep(const std::string& asked, Source source, std::shared_ptr<const std::string> text) {
    auto kept = kept_.lock();
    std::size_t bytes = text->size();
    for (const auto& [of, each] : *kept) bytes += each.text->size();
    if (kept->size() >= kMost || bytes > kMostBytes) kept->clear();
    (*kept)[asked] = {std::move(source), std::move(text)};
  }

 private:
  struct Kept {
    Source source;
    std::shared_ptr<const std::string> text;
  };
  mutable Guarded<std::map<std::string, Kept>> kept_;
};

}  // namespace paceline::dashboard
