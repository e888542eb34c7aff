#pragma once

// In front of a server: while it is ill, each watch is one event of 100 MB, in pieces. What its reader takes
// of it, and how much memory is allocated meanwhile. For one reader; `seen` is thread-safe.

#include <malloc.h>

#include <algorithm>
#include <string>

#include "base/guarded.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::kube {

class LongLines final : public Transport {
 public:
  explicit LongLines(Transport& server) : server_(server) {}

  static constexpr std::size_t kLine = 100'000'000, kPiece = 1u << 16;
  struct Seen {
    bool ill = true;
    int lines = 0;
    std::size_t taken = 0;   // the most bytes of one line until its reader had enough
    std::size_t memory = 0;  // the most that was allocated while one came, beyond what was before
    std::size_t kept = 0;    // the most that a line left behind, when the next request came
  };
  Guarded<Seen> seen;

  absl::StatusOr<Response> call(const Request& request) override { return server_.call(request); }
  absl::StatusOr<Response> stream(const Request& request,
                                  const std::function<bool(std::string_view)>& on_bytes,
                                  std::stop_token stop) override {
    if (last_ > 0) {
      auto now = seen.lock();
      now->kept = std::max(now->kept, beyond(last_));
    }
    const bool ill = seen.lock()->ill;
    if (!ill || request.path.find("watch=true") == std::string::npos) {
      return server_.stream(request, on_bytes, stop);
    }
    const std::string piece(kPiece, 'x');
    const std::size_t before = last_ = allocated();
    std::string head = R"({"type":"ADDED","object":{"metadata":{"namespace":"n","name":"huge"},"x":")";
    std::size_t taken = 0, most = 0;
    bool wanted = on_bytes(head);
    for (; wanted && taken < kLine; taken += kPiece) {
      wanted = on_bytes(piece);
      most = std::max(most, beyond(before));
    }
    if (wanted) on_bytes("\"}}\n");
    auto now = seen.lock();
    ++now->lines;
    now->taken = std::max(now->taken, taken);
    now->memory = std::max(now->memory, most);
    return Response{200, "", std::nullopt, "application/json"};
  }

 private:
  static std::size_t allocated() {
    const auto all = ::mallinfo2();  // nothing under sanitizers
    return all.uordblks + all.hblkhd;
  }
  static std::size_t beyond(std::size_t before) {
    const std::size_t now = allocated();
    return now > before ? now - before : 0;
  }
  Transport& server_;
  std::size_t last_ = 0;  // allocated before the last line; the informer's thread alone
};

}  // namespace paceline::kube
