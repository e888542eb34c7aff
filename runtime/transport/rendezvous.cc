#include "runtime/transport/rendezvous.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "base/check.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"

namespace paceline::transport {

namespace {

constexpr Duration kRetryAfter = std::chrono::milliseconds(10);
constexpr int kNobody = -1;  // a descriptor to wait for that never comes

MetPeer* find(std::vector<MetPeer>& met, int rank) {
  for (MetPeer& peer : met) {
    if (peer.rank == rank) return &peer;
  }
  return nullptr;
}

bool complete(const MetPeer& peer) {
  return std::all_of(peer.channels.begin(), peer.channels.end(),
                     [](const Wire& wire) { return wire.valid(); });
}

std::string name_of(const RendezvousPlan& plan, int rank) {
  for (const RendezvousPeer& peer : plan.peers) {
    if (peer.rank == rank && !peer.name.empty()) return str_cat("rank ", rank, " (", peer.name, ")");
  }
  return str_cat("rank ", rank);
}

std::vector<int> descriptors_for(const RendezvousPlan& plan, int peer) {
  std::vector<int> all = plan.local ? plan.descriptors_for_all : std::vector<int>();
  if (plan.local && peer > plan.rank) {
    all.insert(all.end(), plan.descriptors_for_higher.begin(), plan.descriptors_for_higher.end());
  }
  return all;
}

// Memory that members share is no network.
bool is_encrypted(const RendezvousPlan& plan) {
  return plan.encrypted && !plan.local;
}

}  // namespace

// A connection that has not yet proved who it is.
struct Rendezvous::HalfOpen {
  UniqueFd fd;
  TimePoint until;
  MessageReader reader{kMessageBytes};
  bool heard = false;  // its hello was answered
  Message hello;
  Nonce nonce{};
  std::unique_ptr<TlsSession> tls;  // it has proved who it is
};

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::make(UniqueFd tcp_listener, UniqueFd local_listener,
                                                             const Clock& clock) {
  UniqueFd cancelled(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!cancelled.valid()) return errno_status(errno, "an eventfd for a meeting point");
  return std::unique_ptr<Rendezvous>(
      new Rendezvous(std::move(tcp_listener), std::move(local_listener), std::move(cancelled), clock));
}

Rendezvous::Rendezvous(UniqueFd tcp_listener, UniqueFd local_listener, UniqueFd cancelled, const Clock& clock)
    : tcp_listener_(std::move(tcp_listener)),
      local_listener_(std::move(local_listener)),
      cancelled_(std::move(cancelled)),
      clock_(clock) {}

void Rendezvous::cancel(Generation through) {
  auto state = cancelling_.lock();
  state->through = std::max(state->through, through);
  if (state->meeting.value > 0 && state->meeting <= through)
    PL_CHECK(::eventfd_write(cancelled_.get(), 1) == 0, "an eventfd takes a one");
}

absl::StatusOr<std::vector<MetPeer>> Rendezvous::meet(const RendezvousPlan& plan, Deadline deadline,
                                                      std::vector<MetPeer> kept) {
  {
    auto state = cancelling_.lock();
    if (plan.generation <= state->through) return absl::CancelledError("the meeting was cancelled");
    state->meeting = plan.generation;
  }
  auto met = meet_peers(plan, deadline, std::move(kept));
  auto state = cancelling_.lock();
  state->meeting = {};
  eventfd_t writes = 0;
  (void)::eventfd_read(cancelled_.get(), &writes);  // the next meeting's is another matter
  return met;
}

absl::StatusOr<std::vector<MetPeer>> Rendezvous::meet_peers(const RendezvousPlan& plan, Deadline deadline,
                                                            std::vector<MetPeer> kept) {
  std::vector<MetPeer> met;
  for (const RendezvousPeer& peer : plan.peers) {
    met.push_back({peer.rank, std::vector<Wire>(static_cast<std::size_t>(plan.channels))});
  }
  wrong_key_seen_ = false;
  PL_RETURN_IF_ERROR(renew(plan, std::move(kept), met, deadline));
  // Lower ranks first: rank 0 waits for nobody before it accepts, so everybody's turn comes.
  for (std::size_t i = 0; i < plan.peers.size(); ++i) {
    if (plan.peers[i].rank < plan.rank && !met[i].kept)
      PL_RETURN_IF_ERROR(call(plan, plan.peers[i], met[i], deadline));
  }
  PL_RETURN_IF_ERROR(receive(plan, met, deadline));
  return met;
}

// ---- connections of an earlier view
// ------------------------------------------------------------------------------------------------

namespace {

Message renewal_of(const RendezvousPlan& plan, int from, int to) {
  Message renewal;
  renewal.type = MessageType::kRenewal;
  renewal.channels = static_cast<std::uint8_t>(plan.channels);
  renewal.generation = plan.generation;
  renewal.rank = static_cast<std::uint32_t>(from);
  renewal.world = static_cast<std::uint32_t>(plan.world);
  renewal.target = static_cast<std::uint32_t>(to);
  renewal.proof = prove_renewal(plan.key, renewal);
  return renewal;
}

}  // namespace

// Higher ranks send first, and wait for nobody before. So they are read and answered before this member waits
// for a lower one's answer, and no pair waits for another one.
absl::Status Rendezvous::renew(const RendezvousPlan& plan, std::vector<MetPeer> kept,
                               std::vector<MetPeer>& met, Deadline deadline) {
  std::erase_if(kept, [&](const MetPeer& link) {
    const bool wanted =
        find(met, link.rank) != nullptr && link.channels.size() == static_cast<std::size_t>(plan.channels);
    return !wanted || (link.rank < plan.rank && !send_renewal(plan, link));
  });
  std::ranges::sort(kept, std::greater<>(), &MetPeer::rank);
  for (MetPeer& link : kept) {
    const absl::Status renewed = take_renewal(plan, link, deadline);
    if (!renewed.ok() && !absl::IsAborted(renewed)) return renewed;
    const bool answered = renewed.ok() && (link.rank < plan.rank || send_renewal(plan, link));
    if (answered) *find(met, link.rank) = std::move(link);
    link.channels.clear();  // the other end sees it, and connects anew
  }
  return absl::OkStatus();
}

// A byte that has come by now is of the view before: the higher rank sends first, and the lower one has read
// that renewal.
bool Rendezvous::send_renewal(const RendezvousPlan& plan, const MetPeer& kept) {
  std::vector<pollfd> entries;
  for (const Wire& channel : kept.channels) {
    if (channel.holds_more()) return false;
    entries.push_back({channel.get(), POLLIN | POLLRDHUP, 0});
  }
  return ::poll(entries.data(), entries.size(), 0) == 0 &&
         kept.channels[0]
             .send_short(encode(renewal_of(plan, plan.rank, kept.rank)), descriptors_for(plan, kept.rank))
             .ok();
}

absl::Status Rendezvous::take_renewal(const RendezvousPlan& plan, MetPeer& kept, Deadline deadline) {
  const Wire& control = kept.channels[0];
  MessageReader reader(kMessageBytes);
  while (true) {
    const absl::Status came = wait_for(control.get(), POLLIN, clock_, deadline, cancelled_.get());
    if (absl::IsDeadlineExceeded(came)) return late(plan, kept.rank);
    PL_RETURN_IF_ERROR(came);
    const auto whole = control.read_some(reader);
    if (absl::IsResourceExhausted(whole.status())) return whole.status();
    if (!whole.ok()) return absl::AbortedError("it has not kept the connection");
    if (*whole) break;
  }
  const auto renewal = decode(reader.bytes().first<kMessageBytes>());
  const Message expected = renewal_of(plan, kept.rank, plan.rank);
  if (!renewal.ok() || !equal(renewal->proof, expected.proof) || *renewal != expected) {
    note(str_cat(name_of(plan, kept.rank), " does not renew its connection for this view"));
    return absl::AbortedError("no renewal for this view");
  }
  kept.descriptors = reader.take_descriptors();
  kept.kept = true;
  return absl::OkStatus();
}

// ---- the connecting end
// -----------------------------------------------------------------------------------------------------------

absl::Status Rendezvous::call(const RendezvousPlan& plan, const RendezvousPeer& peer, MetPeer& met,
                              Deadline deadline) {
  const std::string name = name_of(plan, peer.rank);
  for (int channel = 0; channel < plan.channels; ++channel) {
    while (true) {
      auto wire = call_once(plan, peer, channel, met, deadline);
      if (wire.ok()) {
        met.channels[static_cast<std::size_t>(channel)] = *std::move(wire);
        break;
      }
      // ABORTED: it hung up without a word (too many strangers at a time): again, a little later.
      if (wire.status().code() != absl::StatusCode::kAborted) return with_context(wire.status(), name);
      const Deadline pause =
          Deadline::after(clock_.now(), std::min(kRetryAfter, deadline.remaining(clock_.now())));
      const absl::Status paused = wait_for(kNobody, 0, clock_, pause, cancelled_.get());
      if (absl::IsCancelled(paused)) return paused;
      if (deadline.expired(clock_.now()))
        return absl::DeadlineExceededError(str_cat(name, " does not answer"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Wire> Rendezvous::call_once(const RendezvousPlan& plan, const RendezvousPeer& peer,
                                           int channel, MetPeer& met, Deadline deadline) {
  // A member that still reads its data listens, but does not answer yet: that wait is the caller's to limit.
  const Deadline dial(std::min(deadline.at(), clock_.now() + kDial));
  absl::StatusOr<UniqueFd> fd = absl::InvalidArgumentError("no address is known");
  for (const std::string& address : peer.addresses) {
    fd = plan.local ? connect_local(address, clock_, dial, cancelled_.get())
                    : connect_tcp(address, clock_, dial, cancelled_.get());
    if (fd.ok()) break;
  }
  PL_RETURN_IF_ERROR(fd.status());

  Message hello;
  hello.type = MessageType::kHello;
  hello.channel = static_cast<std::uint8_t>(channel);
  hello.channels = static_cast<std::uint8_t>(plan.channels);
  hello.generation = plan.generation;
  hello.rank = static_cast<std::uint32_t>(plan.rank);
  hello.world = static_cast<std::uint32_t>(plan.world);
  hello.target = static_cast<std::uint32_t>(peer.rank);
  fill_random(std::as_writable_bytes(std::span(hello.nonce)));

  const auto next_message = [&](MessageType type,
                                std::vector<UniqueFd>* descriptors) -> absl::StatusOr<Message> {
    MessageReader reader(kMessageBytes);
    while (true) {
      PL_RETURN_IF_ERROR(wait_for(fd->get(), POLLIN, clock_, deadline, cancelled_.get()));
      auto whole = reader.read_some(fd->get());
      if (absl::IsResourceExhausted(whole.status())) return whole.status();
      if (!whole.ok()) return absl::AbortedError("it hung up");
      if (*whole) break;
    }
    if (descriptors != nullptr) *descriptors = reader.take_descriptors();
    PL_ASSIGN_OR_RETURN(Message message, decode(reader.bytes().first<kMessageBytes>()));
    if (message.type == MessageType::kVerdict && message.refusal != Refusal::kAccepted) {
      const std::string why = str_cat("refuses the connection: ", refusal_text(message.refusal));
      if (message.refusal == Refusal::kWrongKey) return absl::PermissionDeniedError(why);
      if (message.refusal == Refusal::kStaleGeneration) return absl::UnavailableError(why);
      return absl::FailedPreconditionError(why);
    }
    if (message.type != type) return absl::InvalidArgumentError("a handshake message out of turn");
    return message;
  };

  if (!send_short(fd->get(), encode(hello)).ok()) return absl::AbortedError("it hung up");
  PL_ASSIGN_OR_RETURN(const Message challenge, next_message(MessageType::kChallenge, nullptr));
  if (!equal(challenge.proof, prove(plan.key, Side::kServer, hello, challenge.nonce))) {
    return absl::PermissionDeniedError("the keys differ: it is not a member of this view");
  }
  Message proof = hello;
  proof.type = MessageType::kProof;
  proof.proof = prove(plan.key, Side::kClient, hello, challenge.nonce);
  const std::vector<int> descriptors = channel == 0 ? descriptors_for(plan, peer.rank) : std::vector<int>();
  if (!send_short(fd->get(), encode(proof), descriptors).ok()) return absl::AbortedError("it hung up");
  std::vector<UniqueFd> received;
  PL_RETURN_IF_ERROR(next_message(MessageType::kVerdict, &received).status());
  if (channel == 0) met.descriptors = std::move(received);
  if (!is_encrypted(plan)) return Wire(*std::move(fd));
  PL_ASSIGN_OR_RETURN(auto tls,
                      TlsSession::make(fd->get(), Side::kClient, tls_key(plan.key, hello, challenge.nonce)));
  while (true) {
    const absl::StatusOr<bool> done = tls->shake_hands();
    if (absl::IsUnavailable(done.status())) return absl::AbortedError("it hung up");
    PL_RETURN_IF_ERROR(done.status());
    if (*done) return Wire(*std::move(fd), std::move(tls));
    PL_RETURN_IF_ERROR(wait_for(fd->get(), POLLIN, clock_, deadline, cancelled_.get()));
  }
}

// ---- the accepting end
// ------------------------------------------------------------------------------------------------------------

absl::Status Rendezvous::receive(const RendezvousPlan& plan, std::vector<MetPeer>& met, Deadline deadline) {
  const int listener = plan.local ? local_listener_.get() : tcp_listener_.get();
  std::vector<HalfOpen> open;
  // A member that only calls, as for a newcomer's state, hears nobody: strangers of this generation are the
  // view's.
  if (std::ranges::all_of(met, complete)) return absl::OkStatus();
  // Those who came before we knew of this view. Older ones have been replaced by the coordinator's word.
  std::vector<Early> still_early;
  for (Early& early : early_) {
    HalfOpen stranger{std::move(early.fd), clock_.now() + kHearing};
    if (early.hello.generation > plan.generation) {
      still_early.push_back({std::move(stranger.fd), early.hello});
    } else if (on_hello(plan, stranger, early.hello)) {
      open.push_back(std::move(stranger));
    }
  }
  early_ = std::move(still_early);

  while (true) {
    const auto missing =
        std::find_if(met.begin(), met.end(), [](const MetPeer& peer) { return !complete(peer); });
    if (missing == met.end()) return absl::OkStatus();
    const Duration left = deadline.remaining(clock_.now());
    if (left == Duration::zero()) return late(plan, missing->rank);
    // A connection that can't be taken in now would wake every poll.
    const bool listens = open.size() < kMaxHalfOpen;
    std::vector<pollfd> entries = {{listens ? listener : kNobody, POLLIN, 0}};
    for (const HalfOpen& stranger : open) entries.push_back({stranger.fd.get(), POLLIN, 0});
    entries.push_back({cancelled_.get(), POLLIN, 0});
    constexpr int kLookAroundMs = 100;  // at those whose time is over
    if (::poll(entries.data(), entries.size(), poll_milliseconds(left, kLookAroundMs)) < 0 && errno != EINTR)
      return errno_status(errno, "waiting for connections");
    if (entries.back().revents != 0) return absl::CancelledError("the meeting was cancelled");

    std::vector<HalfOpen> rest;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const bool alive = entries[i + 1].revents == 0 || advance(plan, open[i], met);
      if (alive && clock_.now() < open[i].until)
        rest.push_back(std::move(open[i]));
      else if (alive)
        note("a connection that did not say who it is");
    }
    open = std::move(rest);
    if (entries[0].revents != 0) PL_RETURN_IF_ERROR(accept_new(listener, open));
  }
}

absl::Status Rendezvous::late(const RendezvousPlan& plan, int missing) const {
  const std::string why = str_cat(name_of(plan, missing), " did not connect in time",
                                  refused_.empty() ? "" : str_cat("; last refused: ", refused_.back()));
  return wrong_key_seen_ ? absl::PermissionDeniedError(why) : absl::DeadlineExceededError(why);
}

absl::Status Rendezvous::accept_new(int listener, std::vector<HalfOpen>& open) {
  while (open.size() < kMaxHalfOpen) {
    PL_ASSIGN_OR_RETURN(UniqueFd fd, accept_one(listener));
    if (!fd.valid()) break;
    tune_tcp(fd.get());
    open.push_back({std::move(fd), clock_.now() + kHearing});
  }
  return absl::OkStatus();
}

bool Rendezvous::advance(const RendezvousPlan& plan, HalfOpen& stranger, std::vector<MetPeer>& met) {
  if (stranger.tls != nullptr) return shake_hands(stranger, met);
  auto whole = stranger.reader.read_some(stranger.fd.get());
  if (!whole.ok()) {
    note(str_cat("a connection: ", whole.status().message()));
    return false;
  }
  if (!*whole) return true;
  auto message = decode(stranger.reader.bytes().first<kMessageBytes>());
  if (!message.ok()) {
    note(str_cat("a connection: ", message.status().message()));
    return false;
  }
  stranger.reader.restart();
  return stranger.heard ? on_proof(plan, stranger, *message, met) : on_hello(plan, stranger, *message);
}

bool Rendezvous::on_hello(const RendezvousPlan& plan, HalfOpen& stranger, const Message& hello) {
  if (hello.type != MessageType::kHello) {
    note("a connection that does not begin with a hello");
    return false;
  }
  if (hello.generation > plan.generation) {
    if (early_.size() < kMaxEarly)
      early_.push_back({std::move(stranger.fd), hello});
    else
      note("too many connections of later generations");
    return false;
  }
  stranger.hello = hello;
  Refusal refusal = Refusal::kAccepted;
  const bool expected = std::any_of(plan.peers.begin(), plan.peers.end(), [&](const RendezvousPeer& peer) {
    return peer.rank > plan.rank && static_cast<std::uint32_t>(peer.rank) == hello.rank;
  });
  if (hello.generation < plan.generation)
    refusal = Refusal::kStaleGeneration;
  else if (hello.world != static_cast<std::uint32_t>(plan.world))
    refusal = Refusal::kWrongWorld;
  else if (hello.target != static_cast<std::uint32_t>(plan.rank) || !expected)
    refusal = Refusal::kWrongRank;
  else if (hello.channels != plan.channels)
    refusal = Refusal::kWrongChannel;
  if (refusal != Refusal::kAccepted) {
    refuse(plan, stranger, refusal);
    return false;
  }
  Message challenge = hello;
  challenge.type = MessageType::kChallenge;
  fill_random(std::as_writable_bytes(std::span(stranger.nonce)));
  challenge.nonce = stranger.nonce;
  challenge.proof = prove(plan.key, Side::kServer, hello, stranger.nonce);
  stranger.heard = true;
  return send_short(stranger.fd.get(), encode(challenge)).ok();
}

bool Rendezvous::on_proof(const RendezvousPlan& plan, HalfOpen& stranger, const Message& proof,
                          std::vector<MetPeer>& met) {
  const Message& hello = stranger.hello;
  if (proof.type != MessageType::kProof ||
      !equal(proof.proof, prove(plan.key, Side::kClient, hello, stranger.nonce))) {
    wrong_key_seen_ = true;
    refuse(plan, stranger, Refusal::kWrongKey);
    return false;
  }
  MetPeer* const peer = find(met, static_cast<int>(hello.rank));
  if (peer == nullptr || peer->channels[hello.channel].valid()) {
    refuse(plan, stranger, Refusal::kWrongRank);
    return false;
  }
  Message verdict = hello;
  verdict.type = MessageType::kVerdict;
  const std::vector<int> descriptors =
      hello.channel == 0 ? descriptors_for(plan, peer->rank) : std::vector<int>();
  if (!send_short(stranger.fd.get(), encode(verdict), descriptors).ok()) return false;
  if (hello.channel == 0) peer->descriptors = stranger.reader.take_descriptors();
  if (!is_encrypted(plan)) {
    peer->channels[hello.channel] = std::move(stranger.fd);
    return false;
  }
  auto tls = TlsSession::make(stranger.fd.get(), Side::kServer, tls_key(plan.key, hello, stranger.nonce));
  if (!tls.ok()) {
    note(str_cat("a connection: ", tls.status().message()));
    return false;
  }
  stranger.tls = *std::move(tls);
  stranger.until = TimePoint::max();  // it has said who it is: the meeting's own deadline is its, too
  return shake_hands(stranger, met);
}

bool Rendezvous::shake_hands(HalfOpen& stranger, std::vector<MetPeer>& met) {
  const absl::StatusOr<bool> done = stranger.tls->shake_hands();
  if (!done.ok()) note(str_cat("rank ", stranger.hello.rank, ": ", done.status().message()));
  if (!done.ok() || !*done) return done.ok();
  Wire& channel = find(met, static_cast<int>(stranger.hello.rank))->channels[stranger.hello.channel];
  if (channel.valid()) {
    note(str_cat("rank ", stranger.hello.rank, " came twice"));
  } else {
    channel = Wire(std::move(stranger.fd), std::move(stranger.tls));
  }
  return false;
}

void Rendezvous::refuse(const RendezvousPlan& plan, HalfOpen& stranger, Refusal refusal) {
  note(str_cat("rank ", stranger.hello.rank, " of generation ", stranger.hello.generation.value,
               " in generation ", plan.generation.value, ": ", refusal_text(refusal)));
  Message verdict = stranger.hello;
  verdict.type = MessageType::kVerdict;
  verdict.refusal = refusal;
  (void)send_short(stranger.fd.get(), encode(verdict));  // a courtesy: the connection ends either way
}

void Rendezvous::note(std::string text) {
  if (refused_.size() == kMaxRefusals) refused_.erase(refused_.begin());
  refused_.push_back(std::move(text));
}

}  // namespace paceline::transport
