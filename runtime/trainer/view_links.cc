#include "runtime/trainer/view_links.h"

#include <utility>

#include "base/text.h"

namespace paceline::trainer {

namespace {
constexpr char kStopped[] = "this member was stopped";
}  // namespace

ViewLinks::ViewLinks(member::Membership& membership, collective::Fabric& fabric, StopRequest& stop,
                     CatchUps& catch_ups, bool ring)
    : membership_(membership), fabric_(fabric), stop_(stop), catch_ups_(catch_ups), ring_(ring) {
  membership_.on_cancel([this](const absl::Status& why) { close(why); });
  if (ring_) {
    membership_.on_view([this](Generation newest) { close_earlier(newest); });
    membership_.on_catch_up([this](const v1::CatchUp& word) { catch_ups_.begin(word); });
  }
  stop_.on_expire([this] { close(absl::CancelledError(kStopped)); });
}

ViewLinks::~ViewLinks() {
  membership_.on_cancel(nullptr);
  membership_.on_view(nullptr);
  membership_.on_catch_up(nullptr);
  stop_.on_expire(nullptr);
}

// The hooks may have come before the links: they are asked again once they can see them.
void ViewLinks::adopt(Generation view, Close close_them) {
  *links_.lock() = {view, std::move(close_them)};
  const absl::Status membership = membership_.status();
  if (!membership.ok()) close(membership);
  if (stop_.expired()) close(absl::CancelledError(kStopped));
  if (is_superseded(view)) close_earlier(membership_.newest_view());
}

void ViewLinks::close(const absl::Status& reason) {
  fabric_.cancel_connects(kLastGeneration);
  catch_ups_.cancel();
  const Close close_them = links_.lock()->close;  // a copy: nothing is called under the lock
  if (close_them != nullptr) close_them(absl::AbortedError(std::string(reason.message())));
}

// A newer view has come: of earlier ones nothing is waited for any more.
void ViewLinks::close_earlier(Generation newest) {
  fabric_.cancel_connects(Generation{newest.value - 1});
  const Links links = *links_.lock();
  catch_ups_.close_earlier(newest);
  if (links.close != nullptr && links.generation < newest)
    links.close(absl::AbortedError(str_cat("view ", newest.value, " has taken this one's place")));
}

}  // namespace paceline::trainer
