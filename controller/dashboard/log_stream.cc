#include "controller/dashboard/log_stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/text.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/event_stream.h"

namespace paceline::dashboard {

namespace {

constexpr std::size_t kLongLine = 64 << 10;
constexpr Duration kLook = std::chrono::milliseconds(200);  // at the stop, while a buffer is full

class LogStream final : public web::HttpStream {
 public:
  LogStream(std::shared_ptr<LogBuffer> buffer, std::stop_source stop, std::shared_ptr<Sight> sight)
      : buffer_(std::move(buffer)), stop_(std::move(stop)), sight_(std::move(sight)) {}
  ~LogStream() override { stop_.request_stop(); }  // its thread ends soon, and is not waited for

  Piece next(TimePoint now) override {
    if (sight_ != nullptr && sight_->look(now).over) return {nullptr, true};
    const LogBuffer::Taken taken = buffer_->take();
    std::string text;
    if (!taken.text.empty()) text = event_text("", "lines", kube::dump({{"text", taken.text}}));
    if (taken.over) {
      kube::Json end = kube::Json::object();
      if (!taken.status.ok()) end["error"] = std::string(taken.status.message());
      text += event_text("", "end", kube::dump(end));
    }
    if (text.empty() && now >= next_ping_) text = event_text("", "ping", "{}");
    if (text.empty()) return {};
    next_ping_ = now + kPingInterval;
    return {std::make_shared<const std::string>(std::move(text)), taken.over};
  }

 private:
  const std::shared_ptr<LogBuffer> buffer_;
  std::stop_source stop_;
  const std::shared_ptr<Sight> sight_;
  TimePoint next_ping_{};
};

}  // namespace

bool LogBuffer::put(std::string_view bytes, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool has_room = false;
    auto kept =
        kept_.lock_when([](const Kept& now) { return now.text.size() < kMostBytes; }, kLook, &has_room);
    if (!has_room) continue;
    kept->text.append(bytes);
    return true;
  }
  return false;
}

void LogBuffer::finish(const absl::Status& status) {
  auto kept = kept_.lock();
  kept->over = true;
  kept->status = status;
}

LogBuffer::Taken LogBuffer::take() {
  auto kept = kept_.lock();
  std::size_t end = kept->text.rfind('\n') + 1;  // 0: there is no whole line
  if (kept->over || (end == 0 && kept->text.size() >= kLongLine)) end = kept->text.size();
  Taken taken{kept->text.substr(0, end), kept->over, kept->status};
  kept->text.erase(0, end);
  return taken;
}

std::shared_ptr<web::HttpStream> LogFollowers::start(const std::string& viewer, Read read,
                                                     std::shared_ptr<Sight> sight) {
  auto followers = followers_.lock();
  std::erase_if(*followers, [](const Follower& each) { return each.ended->load(); });
  const auto own = std::ranges::count(*followers, viewer, &Follower::viewer);
  if (followers->size() >= kMost || own >= static_cast<std::ptrdiff_t>(kMostOfOne)) return nullptr;
  auto buffer = std::make_shared<LogBuffer>();
  auto ended = std::make_shared<std::atomic<bool>>(false);
  std::jthread thread([buffer, ended, read = std::move(read), wake = wake_](const std::stop_token& stop) {
    buffer->finish(read(
        [&](std::string_view bytes) {
          const bool wanted = buffer->put(bytes, stop);
          wake();
          return wanted;
        },
        stop));
    wake();
    ended->store(true);
  });
  auto stream = std::make_shared<LogStream>(buffer, thread.get_stop_source(), std::move(sight));
  followers->push_back({viewer, ended, std::move(thread)});
  return stream;
}

}  // namespace paceline::dashboard
