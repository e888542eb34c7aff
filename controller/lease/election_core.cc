#include "controller/lease/election_core.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace paceline::lease {

namespace {

Duration seconds(std::int64_t count) {
  constexpr std::int64_t kLongest = 24 * 3600;  // a lease of somebody who means for ever ends some day
  return std::chrono::seconds(std::clamp<std::int64_t>(count, 0, kLongest));
}

std::int64_t whole_seconds(Duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

constexpr std::int64_t kReleasedSeconds = 1;  // the duration of a lease that was given back

}  // namespace

std::string config_error(const ElectionConfig& config) {
  if (config.identity.empty()) return "the identity is empty";
  if (config.retry_period <= Duration::zero()) return "the retry period must be longer than 0 s";
  if (config.lease_duration % std::chrono::seconds(1) != Duration::zero()) {
    return str_cat("the lease duration of ", format_duration(config.lease_duration),
                   " must be a whole number of seconds");
  }
  if (config.renew_deadline >= config.lease_duration) {
    return str_cat("the renew deadline of ", format_duration(config.renew_deadline),
                   " must be shorter than the lease duration of ", format_duration(config.lease_duration));
  }
  const auto slowest_try = std::chrono::duration_cast<Duration>(config.retry_period * kJitterFactor);
  if (config.renew_deadline <= slowest_try) {
    return str_cat("the renew deadline of ", format_duration(config.renew_deadline),
                   " must be longer than 1.2 times the retry period of ",
                   format_duration(config.retry_period));
  }
  return "";
}

ElectionCore::Action ElectionCore::next(TimePoint now, WallTime wall, double random) {
  if (lost_ || (leads_until_ && now >= *leads_until_)) {
    if (!lost_ && error_.empty()) error_ = "this process stood still";
    lost_ = true;
    leads_until_.reset();
    return Lost{str_cat("the lease could not be renewed within ", format_duration(config_.renew_deadline),
                        error_.empty() ? "" : ": ", error_)};
  }
  // A lease that somebody deleted is made again; who else was faster is the next leader.
  if (leads_until_ && seen_ && holder_ != config_.identity) {
    lost_ = true;
    leads_until_.reset();
    error_ = str_cat("it is held by ", holder_.empty() ? "nobody" : holder_, " now");
    return Lost{str_cat("the lease was taken away: ", error_)};
  }
  if (std::exchange(pause_, false)) {
    Duration wait = config_.retry_period;
    if (!leads_until_) {
      wait += std::chrono::duration_cast<Duration>(config_.retry_period * (kJitterFactor * random));
    } else {
      wait = std::min(wait, *leads_until_ - now);
    }
    return Wait{wait};
  }
  if (must_read_) return Read{};
  if (!free(now)) {  // look again later
    must_read_ = true;
    pause_ = true;
    return next(now, wall, random);
  }
  write_began_ = now;
  return make_write(wall);
}

bool ElectionCore::free(TimePoint now) const {
  return now >= *changed_at_ + owed_;
}

ElectionCore::Write ElectionCore::make_write(WallTime wall) const {
  LeaseRecord record{.holder = config_.identity,
                     .duration_seconds = whole_seconds(config_.lease_duration),
                     .acquired = wall,
                     .renewed = wall,
                     .address = config_.address};
  if (!seen_) return {std::move(record), ""};
  record.transitions = seen_->record.transitions;
  if (seen_->record.holder == config_.identity) {
    record.acquired = seen_->record.acquired;
  } else {
    ++record.transitions;
  }
  return {std::move(record), seen_->version};
}

void ElectionCore::see(std::optional<Seen> seen, TimePoint now) {
  const bool changed =
      !changed_at_ || seen.has_value() != seen_.has_value() || (seen && seen->version != seen_->version);
  if (changed) changed_at_ = now;
  const bool nobodys = !seen || seen->record.holder.empty();
  if (!nobodys) {
    owed_ =
        seen->record.holder == config_.identity ? Duration::zero() : seconds(seen->record.duration_seconds);
  } else if (leads_until_ || (seen && seen->record.duration_seconds == kReleasedSeconds)) {
    owed_ = Duration::zero();
  } else if (seen_ && changed) {  // whoever held it may not know yet
    owed_ = std::max(owed_, config_.lease_duration);
  }
  seen_ = std::move(seen);
  holder_ = seen_ ? seen_->record.holder : "";
}

void ElectionCore::on_read(std::optional<Seen> seen, TimePoint now) {
  see(std::move(seen), now);
  must_read_ = false;
  // After a conflict that was none: no faster than other renewals.
  if (std::exchange(conflict_, false) && leads_until_) pause_ = true;
}

void ElectionCore::on_written(Seen seen, TimePoint now) {
  see(std::move(seen), now);
  leads_until_ = write_began_ + config_.renew_deadline;
  conflict_ = false;
  error_.clear();
  must_read_ = false;
  pause_ = true;
}

void ElectionCore::on_conflict() {
  error_ = "the lease changed in between";
  must_read_ = true;
  conflict_ = true;
  pause_ = !leads_until_;
}

void ElectionCore::on_error(std::string error) {
  error_ = std::move(error);
  must_read_ = true;
  pause_ = true;
}

std::optional<ElectionCore::Write> ElectionCore::release(TimePoint now, WallTime wall) const {
  if (!leads(now) || !seen_ || seen_->record.holder != config_.identity) return std::nullopt;
  LeaseRecord record = seen_->record;
  record.holder.clear();
  record.address.clear();
  record.duration_seconds = kReleasedSeconds;
  record.renewed = wall;
  return Write{std::move(record), seen_->version};
}

}  // namespace paceline::lease
