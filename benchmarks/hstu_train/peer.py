"""Times, or trains, the public PyTorch code of HSTU and SASRec on this machine's CPU; steps of HSTU on a device, too.

The peer is meta-recsys/generative-recommenders (research folder); its checkout is given by path and its modules are
imported as they are. What its trainer does around them (DistributedDataParallel, CUDA devices, TensorBoard) is left
out; the step is the same: embeddings, encoder, sampled softmax with 128 negatives, backward, AdamW. Timestamps are
constant, as MovieLens-1M without times has none. Runs in the environment of ``make check-torch``. ``make_steps`` is for
``make device``, whose machine may lack fbgemm_gpu: jagged.py beside this has its operators.

    python peer.py --checkout <folder> --data <sequences.npz> --position-bias-only --serve
    python peer.py --checkout <folder> --data <sequences.npz> --model sasrec --epochs 101 --eval-epochs 80,85,90,95,100

With ``--serve`` it reads lines ``steps <begin> <count>`` and answers each with a JSON object: the seconds, real tokens
and loss of every step. Step n trains on the n-th batch of the order in sequences.npz. With ``--epochs`` it trains and
prints its evaluations as one JSON object.

``sequences.npz`` is written by ``prepare.py``: ``items`` (all events, oldest first), ``offsets`` (per user), ``order``
(of the users) and ``catalogue`` (all item ids).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time

import numpy as np


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", required=True, help="folder of the peer's checkout")
    parser.add_argument("--data", required=True, help="sequences.npz of prepare.py")
    parser.add_argument("--model", choices=("hstu", "sasrec"), default="hstu")
    parser.add_argument("--batch", type=int, default=128, help="sequences per step")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile", action="store_true", help="torch.compile the encoder and the loss")
    parser.add_argument(
        "--position-bias-only", action="store_true", help="the public code's position bias without its time bias"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--serve", action="store_true", help="time steps on request")
    what.add_argument("--epochs", type=int, default=0, help="train this many epochs")
    parser.add_argument("--eval-epochs", default="", help="comma-separated epochs after which to evaluate (from 0)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


MAX_LENGTH = 200
OUTPUT_LENGTH = 11  # the public trainer's gr_output_length + 1
WIDTH = 50


def build(args: argparse.Namespace, item_ids: np.ndarray):
    """The peer's encoder, loss and negatives sampler in its MovieLens-1M configuration."""
    import torch
    from generative_recommenders.research.modeling.sequential.autoregressive_losses import LocalNegativesSampler
    from generative_recommenders.research.modeling.sequential.embedding_modules import LocalEmbeddingModule
    from generative_recommenders.research.modeling.sequential.hstu import HSTU, RelativePositionalBias
    from generative_recommenders.research.modeling.sequential.input_features_preprocessors import (
        LearnablePositionalEmbeddingInputFeaturesPreprocessor,
    )
    from generative_recommenders.research.modeling.sequential.losses.sampled_softmax import SampledSoftmaxLoss
    from generative_recommenders.research.modeling.sequential.output_postprocessors import L2NormEmbeddingPostprocessor
    from generative_recommenders.research.modeling.sequential.sasrec import SASRec
    from generative_recommenders.research.rails.similarities.dot_product_similarity_fn import DotProductSimilarity

    torch.manual_seed(args.seed)
    embedding = LocalEmbeddingModule(num_items=int(item_ids.max()), item_embedding_dim=WIDTH)
    common = dict(
        max_output_len=OUTPUT_LENGTH,
        embedding_dim=WIDTH,
        num_blocks=2,
        num_heads=1,
        embedding_module=embedding,
        similarity_module=DotProductSimilarity(),
        input_features_preproc_module=LearnablePositionalEmbeddingInputFeaturesPreprocessor(
            max_sequence_len=MAX_LENGTH + OUTPUT_LENGTH, embedding_dim=WIDTH, dropout_rate=0.2
        ),
        output_postproc_module=L2NormEmbeddingPostprocessor(embedding_dim=WIDTH, eps=1e-6),
        verbose=False,
    )
    if args.model == "hstu":
        model = HSTU(
            max_sequence_len=MAX_LENGTH,
            linear_dim=WIDTH,
            attention_dim=WIDTH,
            normalization="rel_bias",
            linear_config="uvqk",
            linear_activation="silu",
            linear_dropout_rate=0.2,
            attn_dropout_rate=0.0,
            **common,
        )
        if args.position_bias_only:
            for layer in model._hstu._attention_layers:
                layer._rel_attn_bias = RelativePositionalBias(MAX_LENGTH + OUTPUT_LENGTH)
    else:
        model = SASRec(
            max_sequence_len=MAX_LENGTH,
            ffn_hidden_dim=WIDTH,
            ffn_activation_fn="relu",
            ffn_dropout_rate=0.2,
            **common,
        )
    loss = SampledSoftmaxLoss(num_to_sample=128, softmax_temperature=0.05, model=model, activation_checkpoint=False)
    sampler = LocalNegativesSampler(
        num_items=int(item_ids.max()),
        item_emb=embedding._item_emb,
        all_item_ids=item_ids.tolist(),
        l2_norm=True,
        l2_norm_eps=1e-6,
    )
    return model, loss, sampler


def prepare_training(args: argparse.Namespace, item_ids: np.ndarray, device: str):
    """The same on a device, ready to train, and the optimizer."""
    import torch

    model, loss_module, sampler = (module.to(device) for module in build(args, item_ids))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0)
    model.train()
    if args.compile:
        model.forward = torch.compile(model.forward)
        loss_module.jagged_forward = torch.compile(loss_module.jagged_forward)
    return model, loss_module, sampler, optimizer


def make_batch(items: np.ndarray, offsets: np.ndarray, users: np.ndarray, drop_last: int):
    """Padded ids (with the target after the inputs), lengths, targets and constant timestamps of `users`."""
    import torch

    width = MAX_LENGTH + OUTPUT_LENGTH
    ids = np.zeros((len(users), width), np.int64)
    lengths = np.zeros(len(users), np.int64)
    targets = np.zeros(len(users), np.int64)
    for row, user in enumerate(users):
        events = items[offsets[user] : offsets[user + 1] - drop_last]
        history = events[:-1][-MAX_LENGTH:]
        ids[row, : len(history)] = history
        lengths[row] = len(history)
        targets[row] = events[-1]
    times = torch.zeros((len(users), width), dtype=torch.int64)
    return torch.from_numpy(ids), torch.from_numpy(lengths), torch.from_numpy(targets), times


def train_step(model, loss_module, sampler, optimizer, batch):
    """One step as the public trainer takes it; returns the loss, a tensor."""
    ids, lengths, targets, times = batch
    ids = ids.clone()
    ids.scatter_(dim=1, index=lengths.view(-1, 1), src=targets.view(-1, 1))
    payloads = {"timestamps": times, "ratings": times}
    optimizer.zero_grad()
    embeddings = model.get_item_embeddings(ids)
    encoded = model(past_lengths=lengths, past_ids=ids, past_embeddings=embeddings, past_payloads=payloads)
    loss, _ = loss_module(
        lengths=lengths,
        output_embeddings=encoded[:, :-1, :],
        supervision_ids=ids[:, 1:],
        supervision_embeddings=embeddings[:, 1:, :],
        supervision_weights=(ids[:, 1:] != 0).float(),
        negatives_sampler=sampler,
        **payloads,
    )
    loss.backward()
    optimizer.step()
    return loss.detach()


def make_steps(args: argparse.Namespace, device: str, most: int):
    """A function that takes training step n on a device and returns its loss, a tensor.

    The batches of the first `most` steps lie on the device before, so that a step is what the code itself does.
    """
    import torch

    data = np.load(args.data)
    items, offsets, order = data["items"], data["offsets"], data["order"]
    model, loss_module, sampler, optimizer = prepare_training(args, data["catalogue"], device)
    chosen = [order[begin : begin + args.batch] for begin in range(0, len(order), args.batch)][:most]
    batches = [tuple(t.to(torch.device(device)) for t in make_batch(items, offsets, users, 1)) for users in chosen]
    return lambda step: train_step(model, loss_module, sampler, optimizer, batches[step % len(batches)])


def evaluate(model, sampler, items, offsets, item_ids, batch_size: int) -> dict[str, float]:
    """HR, NDCG and MRR of every user's last event among all items but the (truncated) history's."""
    import torch

    model.eval()
    catalogue = torch.from_numpy(item_ids)
    column = {int(item): i for i, item in enumerate(item_ids)}
    ranks = []
    with torch.no_grad():
        vectors = sampler.normalize_embeddings(model.get_item_embeddings(catalogue))
        for begin in range(0, len(offsets) - 1, batch_size):
            users = np.arange(begin, min(begin + batch_size, len(offsets) - 1))
            ids, lengths, targets, times = make_batch(items, offsets, users, 0)
            encoded = model(
                past_lengths=lengths,
                past_ids=ids,
                past_embeddings=model.get_item_embeddings(ids),
                past_payloads={"timestamps": times, "ratings": times},
            )
            scores = (encoded[torch.arange(len(users)), lengths - 1] @ vectors.T).numpy()
            for row in range(len(users)):
                target = column[int(targets[row])]
                own = scores[row, target]
                seen = [column[int(i)] for i in ids[row, : int(lengths[row])]]
                scores[row, seen] = -np.inf
                scores[row, target] = -np.inf
                ranks.append(1 + int((scores[row] >= own).sum()))
    model.train()
    rank = np.array(ranks)
    result = {"mrr": float((1 / rank).mean())}
    for cut in (10, 50, 200):
        hit = rank <= cut
        result[f"hr@{cut}"] = float(hit.mean())
        result[f"ndcg@{cut}"] = float((hit / np.log2(rank + 1)).mean())
    return result


def serve(args, model, loss_module, sampler, optimizer, items, offsets, order) -> None:
    """Answers requests for steps until the input ends. Making a batch is not timed: the public trainer has workers."""
    batches = -(-len(order) // args.batch)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        _, begin, count = line.split()
        seconds, tokens, losses = [], [], []
        for step in range(int(begin), int(begin) + int(count)):
            first = step % batches * args.batch
            batch = make_batch(items, offsets, order[first : first + args.batch], 1)
            start = time.perf_counter()
            losses.append(float(train_step(model, loss_module, sampler, optimizer, batch)))
            seconds.append(time.perf_counter() - start)
            tokens.append(int(batch[1].sum()))
        if not all(math.isfinite(loss) for loss in losses):
            sys.exit(f"peer.py: error: the peer's losses are not finite: {losses}")
        print(json.dumps({"seconds": seconds, "tokens": tokens, "losses": losses}), flush=True)


def train(args, model, loss_module, sampler, optimizer, items, offsets, item_ids) -> dict:
    """Trains on all users, in a new random order each epoch; returns the evaluations by epoch."""
    generator = np.random.default_rng(args.seed)
    evaluations = {}
    chosen = {int(e) for e in args.eval_epochs.split(",") if e} or {args.epochs - 1}
    for epoch in range(args.epochs):
        order = generator.permutation(len(offsets) - 1)
        begin = time.perf_counter()
        parts = (order[i : i + args.batch] for i in range(0, len(order), args.batch))
        batches = (make_batch(items, offsets, users, 1) for users in parts)
        losses = [float(train_step(model, loss_module, sampler, optimizer, batch)) for batch in batches]
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, {time.perf_counter() - begin:.1f} s", file=sys.stderr)
        if epoch in chosen:
            evaluations[epoch] = evaluate(model, sampler, items, offsets, item_ids, args.batch)
            print(f"epoch {epoch}: {evaluations[epoch]}", file=sys.stderr)
    return {"evaluations": evaluations}


def main() -> None:
    """Builds the peer's model, then serves or trains."""
    args = parse_arguments()
    if not os.path.isdir(os.path.join(args.checkout, "generative_recommenders", "research")):
        sys.exit(f"peer.py: error: {args.checkout} is no checkout of generative-recommenders (no research folder)")
    sys.path.insert(0, args.checkout)
    import fbgemm_gpu  # noqa: F401  (registers the jagged operators)
    import torch

    torch.set_num_threads(args.threads)
    data = np.load(args.data)
    items, offsets, item_ids = data["items"], data["offsets"], data["catalogue"]
    model, loss_module, sampler, optimizer = prepare_training(args, item_ids, "cpu")
    if args.serve:
        serve(args, model, loss_module, sampler, optimizer, items, offsets, data["order"])
        return
    result = train(args, model, loss_module, sampler, optimizer, items, offsets, item_ids)
    result |= {"model": args.model, "torch": torch.__version__, "threads": args.threads, "batch": args.batch}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
