(* MuCo with equal shares over releases, with people who leave and return: rows tell nothing beyond the rings.

   A ring is for ever. For each column j a permutation of each ring is drawn, and an order of its people. At release i the row of p has the value of p, and in
   column j what the stand-in of d_j(p) has. Who stands in follows from the order and from who is there. Whose rows are there, and what people have in the
   columns, does not depend on values. The rows of a release are a set: nothing says whose they are. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Equal.

Variables (n : nat) (V L J I E Q : finType).
Implicit Types (t : table n V) (p : 'I_n).

(* The ring of everybody; E are the orders, J the columns, I the releases. *)
Variable ring : 'I_n -> L.

(* What a row shows in a column at a release, by the person whose stand-in it shows; None for rows of a ring of which nobody is there. *)
Variable show : E -> I -> J -> 'I_n -> Q.
Variable gone : I -> L -> bool.

Definition inside (r : {perm 'I_n}) := [forall p, ring (r p) == ring p].
Definition columns := {ffun J -> {perm 'I_n}}.

Definition row t (d : columns) (e : E) (i : I) p : L * V * {ffun J -> Q} := (ring p, t p, [ffun j => show e i j (d j p)]).
Definition rows t d e : {ffun I -> {set L * V * {ffun J -> Q}}} := [ffun i => [set row t d e i p | p in [pred p | ~~ gone i (ring p)]]].

(* Columns are dealt inside of rings: one of these draws, each as likely. *)
Definition draws := [set x : columns * E | [forall j, inside (x.1 j)]].

(* In how many of the draws the rows of all releases are z. *)
Definition likelihood t z := #|[set x in draws | rows t x.1 x.2 == z]|.

Section Exchanged.

Variable r : {perm 'I_n}.
Hypothesis r_inside : inside r.

Definition along (x : columns * E) : columns * E := ([ffun j => r * x.1 j], x.2).

Lemma along_inj : injective along.
Proof.
move=> [d1 e1] [d2 e2] [same ->]; congr (_, _); apply/ffunP=> j.
by move/ffunP/(_ j): same; rewrite !ffunE => /mulgI.
Qed.

Lemma ring_r p : ring (r p) = ring p.
Proof. by apply/eqP; move/forallP: r_inside. Qed.

Lemma rows_along t x : rows (moved t r) (along x).1 (along x).2 = rows t x.1 x.2.
Proof.
apply/ffunP=> i; rewrite !ffunE; apply/setP=> z.
have same p : row (moved t r) (along x).1 (along x).2 i p = row t x.1 x.2 i (r p).
  by rewrite /row ring_r ffunE; congr (_, _, _); apply/ffunP=> j; rewrite !ffunE permM.
apply/imsetP/imsetP => [[p there ->]|[p there ->]].
  by exists (r p); rewrite ?same // inE ring_r.
exists (r^-1 p); last by rewrite same permKV.
by rewrite inE -ring_r permKV.
Qed.

Lemma along_draws x : (along x \in draws) = (x \in draws).
Proof.
rewrite !inE; apply/forallP/forallP => all j; apply/forallP=> p; have := all j; rewrite /= ?ffunE => /forallP.
  by move/(_ (r^-1 p)); rewrite permM permKV => /eqP ->; rewrite -ring_r permKV.
by move/(_ (r p)) => /eqP d_in; rewrite permM d_in ring_r.
Qed.

(* Tables that differ inside of rings only explain the rows of all releases equally well. *)
Theorem equal_shares t z : likelihood (moved t r) z = likelihood t z.
Proof.
rewrite /likelihood -[RHS](card_imset _ along_inj); congr #|pred_of_set _|.
apply/setP=> x; apply/idP/imsetP => [|[y + ->]]; rewrite !inE.
  move=> /andP[x_draw /eqP is_z].
  pose y : columns * E := ([ffun j => r^-1 * x.1 j], x.2).
  have x_y : x = along y.
    by rewrite [LHS]surjective_pairing; congr (_, _); apply/ffunP=> j; rewrite !ffunE mulKVg.
  exists y => //; rewrite inE -along_draws -x_y inE x_draw /=.
  by have := rows_along t y; rewrite -x_y is_z => <-.
move=> /andP[y_draw /eqP is_z]; have := along_draws y; rewrite !inE => ->.
by rewrite y_draw rows_along is_z eqxx.
Qed.

End Exchanged.

End Equal.
