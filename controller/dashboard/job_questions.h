#pragma once

// Answers what is asked about one job: its series, events, logs and so on. The server's thread calls; what
// may block is done by workers, and logs that are followed by threads of their own.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/call.h"
#include "controller/dashboard/log_stream.h"
#include "controller/dashboard/place.h"
#include "controller/dashboard/shared_texts.h"
#include "controller/dashboard/workers.h"

namespace paceline::dashboard {

class JobQuestions {
 public:
  static constexpr std::size_t kMostLogBytes = 4 << 20;
  static constexpr std::int64_t kMostLogLines = 100'000;
  static constexpr std::int64_t kMostPast = 2000;           // jobs of one answer
  static constexpr std::size_t kMostObjectBytes = 4 << 20;  // of their objects

  // `wake`: a log that is followed may have more.
  JobQuestions(Board& board, Place& place, const Clock& clock, std::function<void()> wake)
      : board_(board), place_(place), clock_(clock), followers_(std::move(wake)) {}

  void series(Call call);
  void heat_map(Call call);
  void timeline(Call call);
  void events(Call call);
  void logs(Call call);
  void log(Call call);
  void follow_log(Call call);
  void yaml(Call call);
  void next(Call call);

  // Jobs that are deleted.
  void past(Call call);
  // Goes on with the one that the call names, or with none; answers by itself where the history can't be
  // read. REQUIRES: the place has a history.
  void find_past(Call call, std::function<void(Call)> then);

 private:
  using Task = std::function<absl::StatusOr<web::HttpAnswer>(const Call&, const std::stop_token&)>;
  // Answers by a worker; errors become the answer.
  static void post(Workers& workers, Call call, Task task);
  void work(Call call, Task task) { post(workers_, std::move(call), std::move(task)); }
  // The same, where an API server or a kubelet is asked: they may be slow or hang, and curves don't wait.
  void ask(Call call, Task task) { post(askers_, std::move(call), std::move(task)); }
  using SeriesText = std::function<std::string(const JobSeries&)>;
  // An answer that is made of a job's series and object alone, once for all who ask for it between two
  // changes. One that nobody follows is read anew each time.
  absl::StatusOr<web::HttpAnswer> shared(const Call& of, const SeriesText& make);

  Board& board_;
  Place& place_;
  const Clock& clock_;
  SharedTexts texts_;
  LogFollowers followers_;
  Workers workers_{3}, askers_{3};
};

}  // namespace paceline::dashboard
