// suspend, resume, scale, checkpoint, replace: small patches, after a look whether they make sense.

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include "base/status.h"
#include "base/whole_number.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/names.h"
#include "cli/state/run_edits.h"
#include "controller/api/edit.h"
#include "controller/api/requests.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/requests.h"

namespace paceline::cli {

namespace {

using kube::Json;

constexpr int kMaxTries = 5;  // when somebody else changes the job at the same time

// Limits of a request: until somebody has seen it, and until it is carried out.
constexpr Duration kSeenLimit = std::chrono::seconds(30), kAnswerLimit = std::chrono::minutes(10);
constexpr Duration kBetweenLooks = std::chrono::milliseconds(500);

// "run \"digits\"", "job team-a/digits"
std::string named(const JobView& job) {
  return job.run ? str_cat("run \"", job.name, "\"") : str_cat("job ", job_text(job.ns, job.name));
}

absl::Status if_it_goes_on(const JobView& job, const char* what) {
  if (job.deleting)
    return absl::FailedPreconditionError(
        str_cat(named(job), " is being deleted: there is nothing to ", what));
  if (!has_ended(job)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      str_cat(named(job), " has ended (", api::name(job.status.phase), "): there is nothing to ", what));
}

absl::Status suspend_one(Call& call, const std::string& name, bool suspend) {
  const char* verb = suspend ? "suspend" : "resume";
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.job(call.ns, name));
  const JobView job = read_job(object);
  PL_RETURN_IF_ERROR(job.run ? goes_on(*job.run, verb, call.jobs.where(job.ns)) : if_it_goes_on(job, verb));
  if (job.suspended == suspend) {
    PL_RETURN_IF_ERROR(call.jobs.await_owner(name, verb, call.err));
    // Its members may be about to save still.
    if (suspend) PL_RETURN_IF_ERROR(call.jobs.await_suspended(name, call.err).status());
    call.out << call.jobs.reference(name) << (suspend ? " is suspended already\n" : " is not suspended\n");
    return absl::OkStatus();
  }
  const Json patch = {{"metadata", {{"uid", job.uid}}}, {"spec", {{"runPolicy", {{"suspend", suspend}}}}}};
  PL_RETURN_IF_ERROR(call.jobs.patch(call.ns, name, patch, verb).status());
  PL_RETURN_IF_ERROR(call.jobs.await_owner(name, verb, call.err));
  const auto loses = suspend ? call.jobs.await_suspended(name, call.err) : "";
  if (loses.ok() || absl::IsDataLoss(loses.status()))
    call.out << call.jobs.reference(name) << (suspend ? " suspended\n" : " resumed\n");
  PL_RETURN_IF_ERROR(loses.status());
  if (!loses->empty()) call.err << *loses << "\n";
  if (!job.queue.empty() && !suspend)
    call.err << "its queue \"" << job.queue << "\" may suspend it again until there is room\n";
  return absl::OkStatus();
}

// The key of a role as the object has it: names of roles are in any case.
std::optional<std::string> key_of(const Json& object, Role role) {
  const Json& replicas = kube::at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return std::nullopt;
  for (const auto& [key, spec] : replicas.items()) {
    if (kube::role_named(key) == role) return key;
  }
  return std::nullopt;
}

// "chief, worker"
std::string roles_of(const Json& object) {
  std::string text;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    if (key_of(object, role)) text += str_cat(text.empty() ? "" : ", ", role_name(role));
  }
  return text.empty() ? "none" : text;
}

// The numbers come first: of another one the parser would say which other field it does not fit.
absl::Status check(const JobView& view, const Json& before, const Json& after,
                   const std::vector<Scaling>& scalings) {
  const api::Parsed old_job = kube::parse_job(before, kube::job_metadata(before));
  const api::Parsed new_job = kube::parse_job(after, kube::job_metadata(after));
  const std::string text = named(view);
  if (!old_job.job) {
    return absl::FailedPreconditionError(
        str_cat(text, " can't be run, so scaling does not help: ", kube::errors_of(old_job.diagnostics)));
  }
  std::string refused;
  for (const auto& [role, replicas] : scalings) {
    if (!api::allowed_replicas(*old_job.job, role).holds(replicas))
      refused += str_cat("; ", role_name(role), "=", replicas, ": allowed ",
                         api::allowed_replicas_text(*old_job.job, role));
  }
  if (!refused.empty())
    return absl::InvalidArgumentError(str_cat("can't scale ", text, refused.replace(0, 1, ":")));
  if (!new_job.job)
    return absl::InvalidArgumentError(
        str_cat(text, " can't be scaled so: ", kube::errors_of(new_job.diagnostics)));
  std::string problems;
  for (const api::EditError& error : api::edit_errors(*old_job.job, *new_job.job))
    problems += str_cat("\n  ", error.path, " ", error.problem);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat(text, " can't be scaled so:", problems));
}

absl::Status scale_once(Call& call, const std::string& name, const std::vector<Scaling>& scalings) {
  PL_ASSIGN_OR_RETURN(const Json before, call.jobs.job(call.ns, name));
  const JobView job = read_job(before);
  PL_RETURN_IF_ERROR(job.run ? goes_on(*job.run, "scale", call.jobs.where(job.ns))
                             : if_it_goes_on(job, "scale"));
  Json after = before;
  Json patch = {{"metadata", {{"resourceVersion", job.resource_version}}}};
  std::string said;
  for (const Scaling& scaling : scalings) {
    const auto key = key_of(before, scaling.role);
    if (!key)
      return absl::InvalidArgumentError(
          str_cat(named(job), " has no role ", role_name(scaling.role), "; it has ", roles_of(before)));
    const Json& was = kube::at(before, {"spec", "replicaSpecs", *key, "replicas"});
    const std::int64_t old_replicas = was.is_number_integer() ? was.get<std::int64_t>() : 1;
    if (old_replicas == scaling.replicas) continue;
    after["spec"]["replicaSpecs"][*key]["replicas"] = scaling.replicas;
    patch["spec"]["replicaSpecs"][*key]["replicas"] = scaling.replicas;
    said += str_cat(said.empty() ? "" : ", ", role_name(scaling.role), " from ", old_replicas, " to ",
                    scaling.replicas);
  }
  if (said.empty()) {
    PL_RETURN_IF_ERROR(call.jobs.await_owner(name, "scale", call.err));
    call.out << call.jobs.reference(name) << " has that many already\n";
    return absl::OkStatus();
  }
  PL_RETURN_IF_ERROR(check(job, before, after, scalings));
  PL_RETURN_IF_ERROR(call.jobs.patch(call.ns, name, patch, "scale").status());
  PL_RETURN_IF_ERROR(call.jobs.await_owner(name, "scale", call.err));
  call.out << call.jobs.reference(name) << " scaled: " << said << "\n";
  return absl::OkStatus();
}

using Answer = std::optional<api::Request> api::Requests::*;

// Waits for what comes of a request, and says it.
absl::Status await_answer(Call& call, const std::string& name, const char* annotation,
                          const std::string& text, Answer which) {
  for (Duration waited{};; waited += kBetweenLooks) {
    PL_ASSIGN_OR_RETURN(const Json object, call.jobs.job(call.ns, name));
    const JobView job = read_job(object);
    const std::optional<api::Request>& answer = job.status.requests.*which;
    const bool seen = answer && answer->text == text;
    if (seen && answer->outcome == api::RequestOutcome::kDone) {
      call.out << call.jobs.reference(name) << ": " << answer->message << "\n";
      return absl::OkStatus();
    }
    if (seen && answer->outcome != api::RequestOutcome::kUnderWay)
      return absl::FailedPreconditionError(str_cat(named(job), ": ", answer->message));
    if (!seen) PL_RETURN_IF_ERROR(if_it_goes_on(job, "ask for"));
    if (!seen && kube::text_at(object, {"metadata", "annotations", annotation}) != text)
      return absl::AbortedError(
          str_cat("another request took the place of this one, of which no answer has come; ask ", named(job),
                  " again when the other is answered"));
    if (!seen && waited >= kSeenLimit)
      return absl::DeadlineExceededError(
          str_cat("nobody has looked at the request for ", format_duration(kSeenLimit),
                  "; it stays, and is carried out by whoever looks: does the ",
                  job.run ? "process that owns the run stand still" : "controller run", "?"));
    if (waited >= kAnswerLimit)
      return absl::DeadlineExceededError(
          str_cat(named(job), " has not done it for ", format_duration(kAnswerLimit), ": ", answer->message));
    if (!call.pause(kBetweenLooks, call.stop)) return absl::CancelledError("stopped");
  }
}

absl::Status refused_where(const std::string& obstacle) {
  return obstacle.empty() ? absl::OkStatus() : absl::FailedPreconditionError(obstacle);
}

// `obstacle`: why it can't be done, by the job and its status.
absl::Status request(Call& call, const std::string& name, const char* verb, const char* annotation,
                     const std::string& subject, Answer which,
                     const std::function<absl::Status(const api::TrainingJob&)>& obstacle) {
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.job(call.ns, name));
  const JobView view = read_job(object);
  PL_RETURN_IF_ERROR(view.run ? goes_on(*view.run, verb, call.jobs.where(view.ns))
                              : if_it_goes_on(view, verb));
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (parsed.job) {
    parsed.job->status = view.status;
    if (const absl::Status why = obstacle(*parsed.job); !why.ok())
      return {why.code(), str_cat("can't ", verb, " ", named(view), ": ", why.message())};
  }
  const std::string text = subject + kube::format_micro_time(call.clock.wall_now());
  const Json patch = {{"metadata", {{"uid", view.uid}, {"annotations", {{annotation, text}}}}}};
  PL_RETURN_IF_ERROR(call.jobs.patch(call.ns, name, patch, verb).status());
  PL_RETURN_IF_ERROR(call.jobs.await_owner(name, verb, call.err));
  return await_answer(call, name, annotation, text, which);
}

}  // namespace

absl::Status checkpoint_job(Call& call, const std::string& name) {
  return request(call, name, "checkpoint", api::kCheckpointRequest, "", &api::Requests::checkpoint,
                 [](const api::TrainingJob& job) { return refused_where(plan::checkpoint_obstacle(job)); });
}

absl::Status replace_member(Call& call, const std::string& name, const std::string& member) {
  const absl::StatusOr<MemberPattern> pattern = member_pattern(member);
  if (!pattern.ok() || !pattern->role || !pattern->index)
    return absl::InvalidArgumentError(
        str_cat("\"", member, "\" names no single member; allowed: ROLE-INDEX, such as worker-2"));
  const api::Member one{*pattern->role, *pattern->index};
  return request(call, name, "replace a member of", api::kReplaceRequest,
                 str_cat(member_name(one.role, one.index), "@"), &api::Requests::replace,
                 [&](const api::TrainingJob& job) {
                   const std::string why = plan::replace_obstacle(job, one);
                   return plan::has_place(job, one) ? refused_where(why) : absl::NotFoundError(why);
                 });
}

absl::Status suspend_jobs(Call& call, const std::vector<std::string>& names, bool suspend) {
  absl::Status first;
  for (const std::string& name : names) {
    const absl::Status status = suspend_one(call, name, suspend);
    if (!status.ok() && !first.ok()) call.err << call.program << ": " << status.message() << "\n";
    first.Update(status);
  }
  return first;
}

absl::StatusOr<Scaling> parse_scaling(std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto role = kube::role_named(text.substr(0, equals));
  const std::string_view digits = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const std::string fault = whole_number_fault(digits, 0, std::numeric_limits<int>::max());
  if (!role || !fault.empty()) {
    std::string why;
    if (!role && !digits.empty()) why = ": a role is chief, worker, ps or evaluator";
    if (role && !digits.empty()) why = str_cat(": ", fault);
    return absl::InvalidArgumentError(
        str_cat("\"", text, "\" says no number of a role", why, "; allowed: ROLE=N, such as worker=4"));
  }
  Scaling scaling{*role, 0};
  std::from_chars(digits.data(), digits.data() + digits.size(), scaling.replicas);
  return scaling;
}

absl::StatusOr<std::vector<Scaling>> parse_scalings(const std::vector<std::string>& texts) {
  std::vector<Scaling> scalings;
  for (const std::string& text : texts) {
    PL_ASSIGN_OR_RETURN(const Scaling scaling, parse_scaling(text));
    if (std::ranges::count(scalings, scaling.role, &Scaling::role) > 0)
      return absl::InvalidArgumentError(str_cat("\"", text, "\" is another number of ",
                                                role_name(scaling.role), "; allowed: each role once"));
    scalings.push_back(scaling);
  }
  return scalings;
}

absl::Status scale_job(Call& call, const std::string& name, const std::vector<Scaling>& scalings) {
  for (int attempt = 1;; ++attempt) {
    const absl::Status status = scale_once(call, name, scalings);
    if (!absl::IsAborted(status) || attempt == kMaxTries) return status;
  }
}

}  // namespace paceline::cli
