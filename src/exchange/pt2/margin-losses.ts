/** @file Losses of ATen that compare distances with a margin, and that of counts. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator } from "./args.ts";

const KEPT = ["none", "mean", "sum"] as const;
const reduced = (losses: Tensor, args: Args): Tensor => {
  const kind = at(KEPT, args.n("reduction", 1));
  if (kind === "none") return losses;
  return kind === "mean" ? t.mean(losses) : t.sum(losses);
};
const above = (x: Tensor): Tensor => t.maximum(x, 0);

const apart = (a: Tensor, b: Tensor, args: Args): Tensor => {
  const [p, eps] = [args.n("p", 2), args.n("eps", 1e-6)];
  const d = t.add(t.sub(a, b), eps);
  return p === 2 ? t.norm(d, -1) : t.pow(t.sum(t.pow(t.abs(d), p), -1), 1 / p);
};

function tripletMargin(args: Args): Tensor {
  const [anchor, near, far] = [args.t("anchor"), args.t("positive"), args.t("negative")];
  const positive = apart(anchor, near, args);
  const direct = apart(anchor, far, args);
  const negative = args.flag("swap") ? t.minimum(direct, apart(near, far, args)) : direct;
  return reduced(above(t.add(t.sub(positive, negative), args.n("margin", 1))), args);
}

function cosineEmbedding(args: Args): Tensor {
  const [a, b, target] = [args.t("input1"), args.t("input2"), args.t("target")];
  const [aa, bb] = [a, b].map((x) => t.add(t.sum(t.square(x), -1), 1e-12)) as [Tensor, Tensor];
  const cos = t.div(t.sum(t.mul(a, b), -1), t.sqrt(t.mul(aa, bb)));
  const other = above(t.sub(cos, args.n("margin", 0)));
  return reduced(t.where(t.greater(target, 0), t.sub(1, cos), other), args);
}

function poisson(args: Args): Tensor {
  const [x, y] = [args.t("input"), args.t("target")];
  const plain = args.flag("log_input", true)
    ? t.sub(t.exp(x), t.mul(y, x))
    : t.sub(x, t.mul(y, t.log(t.add(x, args.n("eps", 1e-8)))));
  if (!args.flag("full")) return reduced(plain, args);
  const safe = t.where(t.greater(y, 1), y, 1);
  const more = t.add(t.sub(t.mul(safe, t.log(safe)), safe), t.mul(t.log(t.mul(safe, 2 * Math.PI)), 0.5));
  return reduced(t.add(plain, t.where(t.greater(y, 1), more, 0)), args);
}

export const MARGIN_LOSSES: Readonly<Record<string, Operator>> = {
  triplet_margin_loss: tripletMargin,
  margin_ranking_loss: (args) => {
    const apartBy = t.mul(t.neg(args.t("target")), t.sub(args.t("input1"), args.t("input2")));
    return reduced(above(t.add(apartBy, args.n("margin", 0))), args);
  },
  cosine_embedding_loss: cosineEmbedding,
  hinge_embedding_loss: (args) => {
    const [x, y] = [args.t("self"), args.t("target")];
    return reduced(t.where(t.equal(y, 1), x, above(t.sub(args.n("margin", 1), x))), args);
  },
  poisson_nll_loss: poisson,
};
