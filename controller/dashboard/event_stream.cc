#include "controller/dashboard/event_stream.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace paceline::dashboard {

std::string event_text(std::string_view id, std::string_view event, std::string_view data) {
  return str_cat(id.empty() ? "" : "id: ", id, id.empty() ? "" : "\n", "event: ", event, "\ndata: ", data,
                 "\n\n");
}

EventStream::EventStream(Board& board, Wish wish, std::string epoch, std::string_view last_id,
                         std::shared_ptr<Sight> sight)
    : board_(board), wish_(std::move(wish)), epoch_(std::move(epoch)), sight_(std::move(sight)) {
  board_.count_stream(+1);
  if (sight_ != nullptr) {
    const Sight::Seen seen = sight_->look({});
    seen_ = seen.namespaces;
    rights_ = seen.rights;
  }
  const std::string ours = epoch_ + "-";
  if (!last_id.starts_with(ours)) return;
  last_id.remove_prefix(ours.size());
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(last_id.data(), last_id.data() + last_id.size(), version);
  if (error == std::errc() && end == last_id.data() + last_id.size()) jobs_known_ = job_known_ = version;
}

std::string EventStream::id(std::uint64_t version) const {
  return str_cat(epoch_, "-", version);
}

void EventStream::add_jobs(Events& events) {
  const Board::Text news = board_.jobs_since(jobs_known_, seen_);
  jobs_known_ = news.version;
  if (news.json != nullptr) events.push_back({"jobs", news.json});
}

void EventStream::add_job(Events& events, TimePoint now) {
  if (now >= next_look_) {
    board_.look(wish_.job);
    next_look_ = now + Board::kLook / 4;
  }
  const Board::Text news = board_.job_since(wish_.job, job_known_, rights_);
  job_known_ = news.version;
  const bool told = news.gone && job_gone_;
  job_gone_ = news.gone;
  if (news.json != nullptr && !told) events.push_back({"job", news.json});
}

void EventStream::add_series(std::string& text) {
  const Board::Series series = board_.series_of(wish_.job);
  if (series.newest < 0 || series == series_known_) return;
  const Step from = std::max<Step>(0, std::min(series.newest, series_known_.newest + 1));
  text += event_text("", "series", str_cat("{\"from\":", from, "}"));
  series_known_ = series;
}

web::HttpStream::Piece EventStream::next(TimePoint now) {
  if (sight_ != nullptr) {
    const Sight::Seen seen = sight_->look(now);
    if (seen.over) return {nullptr, true};
    const bool same = seen.namespaces == seen_ ||
                      (seen.namespaces != nullptr && seen_ != nullptr && *seen.namespaces == *seen_);
    if (!same) jobs_known_ = 0;  // it gets all that it sees now
    seen_ = seen.namespaces;
    if (std::exchange(rights_, seen.rights) != seen.rights) job_known_ = 0;  // other actions are allowed
  }
  if (last_event_ && now < *last_event_ + board_.event_interval()) return {};
  std::string text;
  if (!std::exchange(greeted_, true)) text = "retry: 2000\n\n";
  Events events;
  if (wish_.jobs) add_jobs(events);
  if (!wish_.job.empty()) {
    add_job(events, now);
    add_series(text);
  }
  // A reader that comes back with an id has had all before it: the last event alone has one.
  const std::uint64_t known = !wish_.jobs         ? job_known_
                              : wish_.job.empty() ? jobs_known_
                                                  : std::min(jobs_known_, job_known_);
  for (const Event& event : events)
    text += event_text(&event == &events.back() ? id(known) : "", event.name, *event.json);
  if (text.empty() && now >= next_ping_) text = event_text("", "ping", "{}");
  if (text.empty()) return {};
  last_event_ = now;
  next_ping_ = now + kPingInterval;
  return {std::make_shared<const std::string>(std::move(text))};
}

}  // namespace paceline::dashboard
