#include "controller/cluster/kube/pending_notes.h"

#include <algorithm>
#include <iterator>

namespace paceline::kube {

namespace {

bool waits_without_a_word(const SlimPod& pod) {
  return pod.phase == cluster::PodPhase::kPending && !pod.deletion && pod.reason.empty() && !pod.node.empty();
}

// What was said before the pod had its node is over.
bool is_old_news(std::string_view reason) {
  return reason.empty() || reason == "FailedScheduling" || reason == "Preempted";
}

std::string time_of(const Json& event) {
  const std::string* const kTimes[] = {&text_at(event, {"series", "lastObservedTime"}),
                                       &text_at(event, {"lastTimestamp"}), &text_at(event, {"eventTime"}),
                                       &text_at(event, {"metadata", "creationTimestamp"})};
  const auto found = std::ranges::find_if(kTimes, [](const std::string* time) { return !time->empty(); });
  return found == std::end(kTimes) ? "" : **found;
}

}  // namespace

std::shared_ptr<const SlimPod> PendingNotes::next(const Pods& pods, TimePoint now) {
  std::shared_ptr<const SlimPod> found;
  const bool may_ask = !asking_ && (!asked_ || now - *asked_ >= kBetweenQuestions) &&
                       (!no_answer_ || now - *no_answer_ >= kAfterNoAnswer);
  for (const auto& pod : pods) {
    if (!waits_without_a_word(*pod)) {
      notes_.erase(pod->uid);
      continue;
    }
    if (notes_.size() >= kMaxNotes && !notes_.contains(pod->uid)) notes_.clear();
    Note& note = notes_.try_emplace(pod->uid, Note{now, {}, {}, {}}).first->second;
    if (found != nullptr || !may_ask || now - note.first_seen < kOrdinaryStart) continue;
    if (note.asked && now - *note.asked < kBetweenQuestionsOfOne) continue;
    note.asked = asked_ = now;
    asking_ = true;
    found = pod;
  }
  return found;
}

void PendingNotes::no_answer(TimePoint now) {
  no_answer_ = now;
  asking_ = false;
}

void PendingNotes::on_events(const SlimPod& pod, const Json::array_t& events) {
  asking_ = false;
  const auto note = notes_.find(pod.uid);
  if (note == notes_.end()) return;
  std::string newest;
  for (const Json& event : events) {
    if (text_at(event, {"involvedObject", "uid"}) != pod.uid || text_at(event, {"type"}) != "Warning")
      continue;
    const std::string& reason = text_at(event, {"reason"});
    const std::string time = time_of(event);
    // RFC 3339 times in UTC compare as texts, to the second.
    if (is_old_news(reason) || time < newest) continue;
    newest = time;
    note->second.reason = sanitize_line(reason, 64);
    note->second.message = sanitize_line(text_at(event, {"message"}), kMaxPodMessageBytes);
  }
}

void PendingNotes::add_to(cluster::Pod& pod) const {
  if (pod.phase != cluster::PodPhase::kPending || !pod.reason.empty()) return;
  const auto note = notes_.find(pod.uid);
  if (note == notes_.end()) return;
  pod.reason = note->second.reason;
  pod.message = note->second.message;
}

}  // namespace paceline::kube
