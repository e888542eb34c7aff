#pragma once

// Server-sent events of one viewer: jobs, one job, and that its series has grown (docs/dashboard-api.md). A
// question about the board's versions each time, so that a viewer that falls behind gets fewer and larger
// events. The server's thread alone.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/dashboard/board.h"
#include "controller/dashboard/gate.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

inline constexpr Duration kPingInterval = std::chrono::seconds(15);

// "id: ...\nevent: ...\ndata: ...\n\n"; `data` has no line end.
std::string event_text(std::string_view id, std::string_view event, std::string_view data);

class EventStream final : public web::HttpStream {
 public:
  struct Wish {
    bool jobs = false;
    std::string job;  // key_of(); empty: none
  };
  // `epoch`: of this server's versions; `last_id`: Last-Event-ID, of any server's. `sight`: what the viewer
  // sees; null: all.
  EventStream(Board& board, Wish wish, std::string epoch, std::string_view last_id,
              std::shared_ptr<Sight> sight = nullptr);
  ~EventStream() override { board_.count_stream(-1); }

  Piece next(TimePoint now) override;

 private:
  struct Event {
    std::string_view name;
    std::shared_ptr<const std::string> json;
  };
  using Events = std::vector<Event>;
  std::string id(std::uint64_t version) const;
  void add_jobs(Events& events);
  void add_job(Events& events, TimePoint now);
  void add_series(std::string& text);

  Board& board_;
  const Wish wish_;
  const std::string epoch_;
  const std::shared_ptr<Sight> sight_;
  Namespaces seen_;
  Rights rights_;
  std::uint64_t jobs_known_ = 0, job_known_ = 0;
  bool job_gone_ = false;
  Board::Series series_known_;
  bool greeted_ = false;
  std::optional<TimePoint> last_event_;
  TimePoint next_ping_{}, next_look_{};
};

}  // namespace paceline::dashboard
