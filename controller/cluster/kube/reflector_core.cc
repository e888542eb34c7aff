#include "controller/cluster/kube/reflector_core.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/retry_after.h"
#include "base/text.h"
#include "controller/cluster/kube/api_error.h"

namespace paceline::kube {

namespace {

bool to_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool is_older(std::string_view resource_version, std::string_view than) {
  std::uint64_t a = 0, b = 0;
  return to_number(resource_version, a) && to_number(than, b) && a < b;
}

ReflectorCore::Action ReflectorCore::next() {
  if (wait_ > Duration::zero()) {
    return Wait{std::exchange(wait_, Duration::zero()), std::exchange(reason_, std::string())};
  }
  if (listing_) return List{page_, continue_token_, round_};
  progress_ = over_ = false;
  const double part = 1 + static_cast<double>(rng_.uniform());
  const auto count = static_cast<double>(limits_.shortest_watch.count()) * part;
  return Watch{resource_version_, Duration(static_cast<std::int64_t>(count))};
}

void ReflectorCore::list_again() {
  listing_ = true;
  wait_ = {};
  continue_token_.clear();
  pages_ = 0;
  ++round_;
}

void ReflectorCore::fail(std::string_view what, const absl::Status& error) {
  const int doublings = std::min(failures_++, 16);
  const double base = static_cast<double>(limits_.first_wait.count()) * static_cast<double>(1 << doublings);
  const double jittered = base * (1 + static_cast<double>(rng_.uniform()));
  wait_ = std::min(limits_.longest_wait, Duration(static_cast<std::int64_t>(jittered)));
  if (const auto asked = retry_after(error)) wait_ = std::max(wait_, std::min(*asked, limits_.longest_asked));
  reason_ = str_cat(what, ": ", std::string(error.message()));
}

bool ReflectorCore::page_read(std::string_view resource_version, std::string_view continue_token) {
  continue_token_ = continue_token;
  if (!continue_token_.empty() && ++pages_ >= limits_.pages) {
    list_again();
    fail("listing failed", absl::DataLossError(str_cat("it does not end after ", limits_.pages, " pages")));
  }
  if (!continue_token.empty()) return false;
  resource_version_ = resource_version;
  listing_ = false;
  pages_ = 0;
  watch_failures_ = 0;
  return true;
}

void ReflectorCore::list_failed(const absl::Status& error) {
  if (absl::IsOutOfRange(error)) page_ = std::min(page_ * 2, limits_.largest_page);
  if (absl::IsResourceExhausted(error)) page_ = std::max(page_ / 2, 1);
  // A page that could not be fetched is asked for again; of a list that is refused, nothing is.
  if (!absl::IsUnavailable(error) && !absl::IsDeadlineExceeded(error)) list_again();
  fail("listing failed", error);
}

bool ReflectorCore::event_read(std::string_view resource_version) {
  if (is_older(resource_version, resource_version_)) {
    over_ = true;
    list_again();
    fail("the watch went back",
         absl::AbortedError(str_cat("from resource version ", resource_version_, " to ", resource_version)));
    return false;
  }
  if (!resource_version.empty()) resource_version_ = resource_version;
  progress_ = true;
  failures_ = watch_failures_ = 0;
  return true;
}

void ReflectorCore::error_read(const absl::Status& error) {
  watch_ended(error, Duration::zero());
  over_ = true;
}

void ReflectorCore::watch_ended(const absl::Status& error, Duration lasted) {
  if (std::exchange(over_, true)) return;
  if (absl::IsCancelled(error)) return;
  if (absl::IsOutOfRange(error)) {
    list_again();
    return fail("the watch has expired", error);
  }
  if (lasted >= limits_.lasting_watch) failures_ = watch_failures_ = 0;
  const bool silent = absl::IsDeadlineExceeded(error) && lasted >= limits_.lasting_watch;
  if (silent || (error.ok() && (progress_ || lasted >= limits_.lasting_watch))) return;
  if (++watch_failures_ >= limits_.watch_failures) list_again();
  if (error.ok()) return fail("the watch ended at once", absl::UnavailableError("without an event"));
  fail("the watch failed", error);
}

}  // namespace paceline::kube
