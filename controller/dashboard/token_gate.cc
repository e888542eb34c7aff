// A request is decided by what is known, in the server's thread; where that does not do, by a worker, who
// asks the API server for what is missing. Both walk the same way: who, then the right on a job, then what
// is seen.

#include "controller/dashboard/token_gate.h"

#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kMostTokenBytes = 16 << 10;

Refusal nobody(std::string message) {
  return {
      401, "Unauthenticated", std::move(message),
      "send a token of yours as `Authorization: Bearer TOKEN`; `kubectl create token NAME` makes one of a "
      "ServiceAccount"};
}

Refusal too_many() {
  return {429, "TooMany", "too many requests", "ask again in a second"};
}

Refusal unanswered(const absl::Status& status) {
  return {503, "Unavailable", str_cat("the API server does not say who you are: ", status.message()),
          "ask again later"};
}

Refusal forbidden(const std::string& user, const Need& need) {
  return {403, "Forbidden",
          str_cat(user, " may not ", need.verb, " trainingjobs/", need.name, " in namespace ", need.ns),
          str_cat("see what you may: kubectl auth can-i ", need.verb, " trainingjobs.paceline.dev/",
                  need.name, " -n ", need.ns)};
}

std::string lane_of(const std::string& user) {
  return str_cat("user ", user);
}

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const Json& each : list) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

std::optional<Somebody> somebody(const Json& review) {
  const Json& user = kube::at(review, {"status", "user"});
  Somebody who{.user = kube::text_at(user, {"username"}), .uid = kube::text_at(user, {"uid"})};
  if (!kube::flag_at(review, {"status", "authenticated"}) || who.user.empty()) return std::nullopt;
  who.groups = texts_of(kube::at(user, {"groups"}));
  if (const Json& extra = kube::at(user, {"extra"}); extra.is_object()) {
    for (const auto& [key, values] : extra.items()) who.extra[key] = texts_of(values);
  }
  return who;
}

}  // namespace

// The namespaces that a stream's viewer sees, asked for again while it lasts.
class TokenGate::ViewerSight final : public Sight, public std::enable_shared_from_this<ViewerSight> {
 public:
  ViewerSight(TokenGate& gate, Viewer viewer, Need need, Seen seen, TimePoint now)
      : gate_(gate), viewer_(std::move(viewer)), need_(std::move(need)) {
    state_.lock()->seen = std::move(seen);
    state_.lock()->checked = now;
    if (need_.of_stream) ++gate_.known_.lock()->streams[viewer_.user];
  }
  ~ViewerSight() override {
    if (!need_.of_stream) return;
    auto known = gate_.known_.lock();
    if (--known->streams[viewer_.user] == 0) known->streams.erase(viewer_.user);
  }

  Seen look(TimePoint now) override {
    bool asks = false;
    Seen seen;
    {
      auto state = state_.lock();
      if (now - state->checked >= AccessCache::kKept) asks = !std::exchange(state->asking, true);
      if (now - state->checked >= AccessCache::kKept + kPatience) state->seen.over = true;
      seen = state->seen;
    }
    if (asks && !seen.over) {
      const bool taken = gate_.workers_->post(
          [self = shared_from_this()](const std::stop_token&) { self->ask(); }, lane_of(viewer_.user));
      if (!taken) state_.lock()->asking = false;
    }
    return seen;
  }

 private:
  void ask() {
    bool counted = true;
    Need again = need_;
    again.of_stream = false;
    const auto admission = gate_.decide(viewer_.token, again, Ask::kServer, counted);
    const TimePoint now = gate_.clock_.now();
    auto state = state_.lock();
    state->asking = false;
    const int refused = admission && admission->refusal ? admission->refusal->status : 0;
    if (refused == 401 || refused == 403) state->seen.over = true;
    if (!admission || refused != 0) return;
    state->checked = now;
    if (admission->sight) state->seen = admission->sight->look({});
  }

  struct State {
    Seen seen;
    TimePoint checked{};
    bool asking = false;
  };
  TokenGate& gate_;
  const Viewer viewer_;
  const Need need_;
  Guarded<State> state_;
};

std::optional<absl::StatusOr<std::optional<Somebody>>> TokenGate::who(const std::string& token, Ask ask) {
  {
    auto known = known_.lock();
    if (auto cached = known->cache.who(digest(token), clock_.now())) return *std::move(cached);
    if (ask == Ask::kCached) return std::nullopt;
  }
  const auto review = api_.create(kube::kTokenReviews, "",
                                  {{"apiVersion", kube::kTokenReviews.api_version},
                                   {"kind", kube::kTokenReviews.kind},
                                   {"spec", {{"token", token}}}});
  PL_RETURN_IF_ERROR(review.status());
  std::optional<Somebody> found = somebody(*review);
  known_.lock()->cache.put_who(digest(token), found, clock_.now());
  return found;
}

std::optional<absl::StatusOr<bool>> TokenGate::may(const Digest& token, const Somebody& who,
                                                   const std::string& verb, const std::string& ns,
                                                   const std::string& name, Ask ask) {
  const Digest right =
      digest(str_cat(std::string_view(reinterpret_cast<const char*>(token.data()), token.size()),
                     kube::dump(Json::array({verb, ns, name}))));
  if (const auto cached = known_.lock()->cache.may(right, clock_.now())) return *cached;
  if (ask == Ask::kCached) return std::nullopt;
  Json attributes = {{"group", "paceline.dev"}, {"resource", kube::kTrainingJobs.plural}, {"verb", verb}};
  if (!ns.empty()) attributes["namespace"] = ns;
  if (!name.empty()) attributes["name"] = name;
  const auto review = api_.create(kube::kAccessReviews, "",
                                  {{"apiVersion", kube::kAccessReviews.api_version},
                                   {"kind", kube::kAccessReviews.kind},
                                   {"spec",
                                    {{"user", who.user},
                                     {"uid", who.uid},
                                     {"groups", who.groups},
                                     {"extra", who.extra},
                                     {"resourceAttributes", std::move(attributes)}}}});
  PL_RETURN_IF_ERROR(review.status());
  const bool allowed =
      kube::flag_at(*review, {"status", "allowed"}) && !kube::flag_at(*review, {"status", "denied"});
  known_.lock()->cache.put_may(right, allowed, clock_.now());
  return allowed;
}

std::optional<absl::StatusOr<Namespaces>> TokenGate::sees(const Digest& token, const Somebody& who, Ask ask) {
  const auto all = may(token, who, "list", "", "", ask);
  if (!all) return std::nullopt;
  PL_RETURN_IF_ERROR(all->status());
  if (**all) return Namespaces();
  std::set<std::string> seen;
  std::size_t asked = 0;
  for (const std::string& ns : namespaces_()) {
    if (++asked > kMostNamespaces) break;
    const auto one = may(token, who, "list", ns, "", ask);
    if (!one) return std::nullopt;
    PL_RETURN_IF_ERROR(one->status());
    if (**one) seen.insert(ns);
  }
  return std::make_shared<const std::set<std::string>>(std::move(seen));
}

std::optional<Admission> TokenGate::decide(const std::string& token, const Need& need, Ask ask,
                                           bool& counted) {
  const auto known = who(token, ask);
  if (!known) return std::nullopt;
  if (!known->ok()) return Admission{.refusal = unanswered(known->status())};
  if (!**known) return Admission{.refusal = nobody("the API server does not know this token")};
  const Somebody& user = ***known;
  const Digest id = digest(token);
  Admission admission{.viewer = {.user = user.user, .token = token}};
  const auto refused = [&](Refusal refusal) {
    admission.refusal = std::move(refusal);
    return admission;
  };
  if (!std::exchange(counted, true) && !known_.lock()->requests.take(user.user, clock_.now()))
    return refused(too_many());
  if (!need.verb.empty()) {
    const auto allowed = may(id, user, need.verb, need.ns, need.name, ask);
    if (!allowed) return std::nullopt;
    if (!allowed->ok()) return refused(unanswered(allowed->status()));
    if (!**allowed) return refused(forbidden(user.user, need));
  }
  Sight::Seen seen;
  if (need.lists) {
    auto listed = sees(id, user, ask);
    if (!listed) return std::nullopt;
    if (!listed->ok()) return refused(unanswered(listed->status()));
    seen.namespaces = **std::move(listed);
  }
  for (const auto& [verb, right] :
       {std::pair{"update", &seen.rights.update}, {"delete", &seen.rights.remove}}) {
    if (!need.rights) break;
    const auto allowed = may(id, user, verb, need.ns, need.name, ask);
    if (!allowed) return std::nullopt;
    if (!allowed->ok()) return refused(unanswered(allowed->status()));
    *right = **allowed;
  }
  if (need.of_stream) {
    auto known_now = known_.lock();
    const auto open = known_now->streams.find(user.user);
    if (open != known_now->streams.end() && open->second >= kMostStreams) return refused(too_many());
  }
  if (need.lists || need.rights || need.of_stream)
    admission.sight =
        std::make_shared<ViewerSight>(*this, admission.viewer, need, std::move(seen), clock_.now());
  return admission;
}

std::optional<std::string> TokenGate::lane(const std::string& peer, const std::string& token) {
  auto known = known_.lock();
  if (const Somebody* const user = known->cache.was(digest(token))) return lane_of(user->user);
  if (!known->reviews.take(peer, clock_.now())) return std::nullopt;
  return str_cat("address ", peer);
}

void TokenGate::admit(const std::string& peer, std::string token, Need need, Then then) {
  if (token.empty() || token.size() > kMostTokenBytes)
    return then({.refusal = nobody("the request brings no bearer token")});
  bool counted = false;
  if (auto admission = decide(token, need, Ask::kCached, counted)) return then(*std::move(admission));
  const std::optional<std::string> whose = lane(peer, token);
  const bool taken =
      whose && workers_->post(
                   [this, token = std::move(token), need = std::move(need), counted, then](
                       const std::stop_token&) mutable { then(*decide(token, need, Ask::kServer, counted)); },
                   *whose);
  if (!taken) then({.refusal = too_many()});
}

void TokenGate::admit(const web::HttpRequest& request, const Need& need, Then then) {
  const std::string& header = request.header("authorization");
  admit(request.peer, header.starts_with(kBearer) ? header.substr(kBearer.size()) : "", need,
        std::move(then));
}

void TokenGate::open(const web::HttpRequest& request, const std::string& token,
                     std::function<void(Opened)> then) {
  admit(request.peer, token, Need{.lists = true},
        [then = std::move(then)](Admission admission) { then({.admission = std::move(admission)}); });
}

}  // namespace paceline::dashboard
