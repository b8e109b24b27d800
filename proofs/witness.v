(* The hypotheses of the theorems can be kept: plans and shifts of which they are true. *)

From mathcomp Require Import all_ssreflect all_fingroup.
From proofs Require Import dealing shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Witness.

Variables (n w : nat) (V : finType).

(* The i-th ring takes the i-th person of each value that has so many; its signature are these values. *)
Definition levels (A : {set 'I_n}) (c : {ffun V -> nat}) (z : unit) (v : V) (i : nat) : {set V} * 'I_n.+1 := ([set u | i < c u], inord i).

Theorem levels_one : one_of_each levels.
Proof.
move=> A t z v i j; rewrite ffunE => less_i less_j [_ /(congr1 val)] /=.
have few : #|of_value A t v| <= n by rewrite -[n in _ <= n]card_ord max_card.
by rewrite !inordK // ltnS ltnW // (leq_trans _ few).
Qed.

Theorem levels_balanced A (c : {ffun V -> nat}) z v i : i < c v ->
  v \in (levels A c z v i).1 /\ forall u, u \in (levels A c z v i).1 -> exists2 j, j < c u & levels A c z u j = levels A c z v i.
Proof. by move=> less; split=> [|u]; rewrite /= inE // => less_u; exists i. Qed.

(* A window of l places is valid. The program draws others as well. *)
Definition window : shifts n w := [ffun X : {set 'I_n} => [ffun i : 'I_w.+1 => inord i]].

Theorem window_valid : valid window.
Proof.
apply/forallP=> X; apply/implyP=> large.
have few : #|X| <= n by rewrite -[n in _ <= n]card_ord max_card.
have small (i : 'I_w.+1) : i < n.+1 by rewrite ltnS (leq_trans _ few) // (leq_trans _ large) // ltnW.
have place (i : 'I_w.+1) : window X i = i :> nat by rewrite !ffunE inordK.
apply/and3P; split; first by rewrite -val_eqE /= place.
  by apply/forallP=> i; rewrite place (leq_trans _ large).
by apply/injectiveP=> i j /(congr1 val) /=; rewrite !place => /val_inj.
Qed.

End Witness.
