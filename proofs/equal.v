(* MuCo with equal shares over releases, with people who leave and return: rows tell nothing beyond the rings and their values.

   A ring is for ever. At release i the row of p has the value of p. What it shows in column j is decided by lots, by the ring, by the values of the ring and
   by the place of the value among them, by who is there and by what people have in the columns. Nothing of it looks at who has which value. The rows of a
   release are a set: nothing says whose they are. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope group_scope.

Section Equal.

Variables (n : nat) (V L J I E Q : finType).
Implicit Types (t : table n V) (p : 'I_n).

(* The ring of everybody; E are the lots (hashes of the key), J the columns, I the releases. *)
Variable ring : 'I_n -> L.

(* What the row of a value shows in a column at a release, by the values of its ring. *)
Variable show : E -> I -> J -> L -> {set V} -> V -> Q.

(* Rings of which nobody is there at a release. *)
Variable gone : I -> L -> bool.

Definition inside (r : {perm 'I_n}) := [forall p, ring (r p) == ring p].
Definition values t (l : L) := [set t p | p in [pred p | ring p == l]].
Definition row t (e : E) (i : I) p : L * V * {ffun J -> Q} :=
  (ring p, t p, [ffun j => show e i j (ring p) (values t (ring p)) (t p)]).
Definition rows t e : {ffun I -> {set L * V * {ffun J -> Q}}} := [ffun i => [set row t e i p | p in [pred p | ~~ gone i (ring p)]]].

Section Exchanged.

Variable r : {perm 'I_n}.
Hypothesis r_inside : inside r.

Lemma ring_r p : ring (r p) = ring p.
Proof. by apply/eqP; move/forallP: r_inside. Qed.

Lemma values_moved t l : values (moved t r) l = values t l.
Proof.
apply/setP=> v; apply/imsetP/imsetP => [[p p_l ->]|[p p_l ->]].
  by exists (r p); rewrite ?ffunE // inE ring_r.
by exists (r^-1 p); rewrite ?ffunE ?permKV // inE -ring_r permKV.
Qed.

(* Tables that differ inside of rings only have the same rows at all releases, whatever the lots are: a reader who knows all lots learns no more. *)
Theorem equal_shares t e : rows (moved t r) e = rows t e.
Proof.
have same i p : row (moved t r) e i p = row t e i (r p) by rewrite /row ring_r values_moved ffunE.
apply/ffunP=> i; rewrite !ffunE; apply/setP=> z.
apply/imsetP/imsetP => [[p there ->]|[p there ->]].
  by exists (r p); rewrite ?same // inE ring_r.
by exists (r^-1 p); rewrite ?same ?permKV // inE -ring_r permKV.
Qed.

End Exchanged.

End Equal.
