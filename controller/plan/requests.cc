#include "controller/plan/requests.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"

namespace paceline::plan {

namespace {

using api::Request;
using api::RequestOutcome;

constexpr std::size_t kMostTextBytes = 256;  // of an annotation; what is behind is not looked at

std::string request_in(const api::TrainingJob& job, const char* annotation) {
  const auto found = job.metadata.annotations.find(annotation);
  if (found == job.metadata.annotations.end()) return "";
  std::string text = found->second;
  std::size_t size = std::min(text.size(), kMostTextBytes);
  // Whole characters: JSON takes no part of one.
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  text.resize(size);
  return text;
}

bool is_another(const std::string& text, const std::optional<Request>& known) {
  return !text.empty() && (!known || known->text != text);
}

api::TrainingJob as_it_is(const Observed& observed, const Plan& plan) {
  api::TrainingJob job = observed.job;
  job.status = plan.status;
  return job;
}

std::string not_now(const api::TrainingJob& job) {
  const std::string& manager = job.spec.run_policy.managed_by;
  if (!api::is_ours(manager)) return str_cat("it is managed by ", manager, ", not by Paceline");
  if (is_terminal(job.status.phase)) return "it has ended";
  if (job.status.phase != api::Phase::kRunning)
    return str_cat("its members do not train now: it is ", api::name(job.status.phase));
  return "";
}

void refuse(const Observed& observed, const char* reason, const std::string& what, Request& request,
            Plan& plan) {
  request.outcome = RequestOutcome::kRefused;
  record_event(observed, true, reason, str_cat(what, ": ", request.message), "somebody asked for it", plan);
}

void note_checkpoint(const Observed& observed, Plan& plan) {
  std::optional<Request>& known = plan.status.requests.checkpoint;
  if (std::string text = request_in(observed.job, api::kCheckpointRequest); is_another(text, known)) {
    known = Request{.text = std::move(text), .at = observed.now};
    known->message = checkpoint_obstacle(as_it_is(observed, plan));
    if (known->message.empty() && !observed.keeps_checkpoints)
      known->message = "its checkpoints lie in its pods and go with them (spec.checkpoint.location)";
    if (!known->message.empty())
      return refuse(observed, kCheckpointRefused, "no checkpoint is saved by request", *known, plan);
    known->message = "members save after the step under way";
    return requeue(Duration::zero(), plan);
  }
  if (!known || known->outcome != RequestOutcome::kUnderWay) return;
  if (observed.report && observed.report->save_answer &&
      observed.report->save_answer->request == known->text) {
    const SaveAnswer& answer = *observed.report->save_answer;
    const bool saved = answer.error.empty();
    known->outcome = saved ? RequestOutcome::kDone : RequestOutcome::kFailed;
    known->message = saved ? str_cat("the checkpoint of step ", answer.step, " is written") : answer.error;
    record_event(observed, !saved, saved ? kCheckpointSaved : kCheckpointNotSaved,
                 str_cat(known->message, saved ? ", as it was asked for" : ""),
                 "somebody asked for a checkpoint", plan);
    return;
  }
  std::string why = not_now(as_it_is(observed, plan));
  if (why.empty() && observed.now - known->at.value_or(observed.now) >= kCheckpointTimeout)
    why = str_cat("its members have saved none for ", format_duration(kCheckpointTimeout));
  if (why.empty()) return;
  known->outcome = RequestOutcome::kFailed;
  known->message = str_cat("no checkpoint was saved by request: ", why);
  record_event(observed, true, kCheckpointNotSaved, known->message, "somebody asked for a checkpoint", plan);
}

void note_replace(const Observed& observed, Plan& plan) {
  std::optional<Request>& known = plan.status.requests.replace;
  std::string text = request_in(observed.job, api::kReplaceRequest);
  if (!is_another(text, known)) return;
  const auto member = api::member_named(text);
  known = Request{.text = std::move(text), .at = observed.now};
  const cluster::Pod* pod = nullptr;
  if (!member) {
    known->message = "it names no member; allowed: ROLE-INDEX, such as worker-2, and \"@\" with any text";
  } else {
    known->message = replace_obstacle(as_it_is(observed, plan), *member);
    pod = find_pod(observed, member->role, member->index);
    if (known->message.empty() && pod == nullptr) known->message = "its pod is not there yet";
  }
  if (!known->message.empty()) {
    const std::string who = member ? member_name(member->role, member->index) : "no member";
    return refuse(observed, kReplacementRefused, str_cat(who, " is not replaced by request"), *known, plan);
  }
  known->outcome = RequestOutcome::kDone;
  known->message = begin_requested_handover(observed, *member, *pod, plan);
}

}  // namespace

bool has_place(const api::TrainingJob& job, const api::Member& member) {
  const auto& replica = api::replica_spec(job, member.role);
  return replica && member.index < replica->places();
}

std::string checkpoint_obstacle(const api::TrainingJob& job) {
  if (!job.spec.training) return "a program of its own (no spec.training) saves by itself";
  return not_now(job);
}

std::string replace_obstacle(const api::TrainingJob& job, const api::Member& member) {
  if (!has_place(job, member)) return str_cat("it has no ", member_name(member.role, member.index));
  if (std::string why = successor_obstacle(job, member.role); !why.empty()) return why;
  if (std::string why = not_now(job); !why.empty()) return why;
  const auto& all = job.status.straggler_replacements;
  const auto now =
      std::ranges::find(all, api::ReplacementOutcome::kUnderWay, &api::StragglerReplacement::outcome);
  return now == all.end() ? "" : str_cat("pod ", now->pod, " is replaced first");
}

std::string save_request(const api::TrainingJob& job) {
  const auto& asked = job.status.requests.checkpoint;
  return asked && asked->outcome == RequestOutcome::kUnderWay ? asked->text : "";
}

void rule_requests(const Observed& observed, Plan& plan) {
  note_checkpoint(observed, plan);
  note_replace(observed, plan);
}

}  // namespace paceline::plan
